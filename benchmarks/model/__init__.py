"""The model of the comparison: answers at once, follows the script in the user's message, notes what it wrote when."""
