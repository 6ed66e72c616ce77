"""Verifies a v1a signature with the cryptography package. Input: JSON on standard input."""
import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

given = json.load(sys.stdin)
key = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(given["x"] + "=="))
signature = base64.b64decode(given["signature"].removeprefix("v1a,"))
try:
    key.verify(signature, f"{given['id']}.{given['timestamp']}.{given['body']}".encode())
    print("valid")
except InvalidSignature:
    print("invalid")
