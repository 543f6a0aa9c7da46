"""Everything that Temporal stores of a turn, encrypted with keys of yours. Needs: pip install 'everturn[encryption]'

    export ENCRYPTION_KEYS=2026-01:$(python -c "import os, base64; print(base64.b64encode(os.urandom(32)).decode())")
    export EVERTURN_DATA_CONVERTER=examples/encryption.py:converter
    everturn worker examples/shop.py
    everturn submit thread-1 "Where is order 7?" --agent shop

The workers and the clients need the same keys. A new key goes to the front, the old ones stay for what they encrypted:
ENCRYPTION_KEYS=2026-02:…,2026-01:…
"""

import base64
import os
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec

from everturn import BadInput

ENCODING = b"binary/encrypted"
NONCE_BYTES = 12


class EncryptionCodec(PayloadCodec):
    """AES-GCM with 256-bit keys by id. The first key encrypts; any of them decrypts."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise BadInput("no encryption keys; set ENCRYPTION_KEYS to ID:KEY, the key as base64 of 32 bytes")
        self._ciphers = {name: AESGCM(_checked(name, key)) for name, key in keys.items()}
        self._newest = next(iter(keys))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypted(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypted(payload) for payload in payloads]

    def _encrypted(self, payload: Payload) -> Payload:
        key, nonce = self._newest, os.urandom(NONCE_BYTES)
        data = self._ciphers[key].encrypt(nonce, payload.SerializeToString(), key.encode())
        return Payload(metadata={"encoding": ENCODING, "encryption-key-id": key.encode()}, data=nonce + data)

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload  # written before encryption was switched on
        key = payload.metadata.get("encryption-key-id", b"").decode(errors="replace")
        cipher = self._ciphers.get(key)
        if cipher is None:
            known = ", ".join(self._ciphers)
            raise BadInput(f"no encryption key has the id {key!r} (there are: {known}); add it to ENCRYPTION_KEYS")
        nonce, data = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, data, key.encode()))
        except (InvalidTag, ValueError):
            raise BadInput(f"a payload does not fit encryption key {key!r}: replaced under its id?") from None


def encrypting(keys: Mapping[str, bytes]) -> DataConverter:
    """A data converter with this codec. Messages and stack traces of failures become payloads, so they are encrypted,
    too; with the default failure converter they would stay readable."""
    return DataConverter(
        payload_codec=EncryptionCodec(keys), failure_converter_class=DefaultFailureConverterWithEncodedAttributes
    )


def keys_from(text: str) -> dict[str, bytes]:
    """The keys of ENCRYPTION_KEYS, the newest first."""
    keys: dict[str, bytes] = {}
    for number, entry in enumerate((entry for entry in text.split(",") if entry.strip()), 1):
        name, _, key = entry.strip().partition(":")
        try:
            decoded = base64.b64decode(key, validate=True)
        except ValueError:
            raise BadInput(f"entry {number} of ENCRYPTION_KEYS is not ID:KEY with the key as base64") from None
        if not name or name in keys:
            raise BadInput(f"entry {number} of ENCRYPTION_KEYS has no id, or one that another key has")
        keys[name] = decoded
    return keys


def _checked(name: str, key: bytes) -> bytes:
    if len(key) != 32:
        raise BadInput(f"encryption key {name!r} has {len(key)} bytes; it must have 32")
    return key


def __getattr__(name: str) -> DataConverter:
    if name == "converter":
        return encrypting(keys_from(os.environ.get("ENCRYPTION_KEYS", "")))
    raise AttributeError(name)
