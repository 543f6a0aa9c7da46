"""The contenders of the comparison, each in an environment of its own: these modules import its packages."""
