"""The client of the Custody Data Service.

``Client`` calls the API, ``verify_signature`` verifies deliveries, ``verify_events`` and ``verify_statements`` prove that nothing is
missing, ``copy_vault`` copies a vault, and ``custody_client.models`` has the types of the results.
"""

from ._copy import VaultCopy, catch_up, copy_vault
from ._errors import CustodyError, NoAnswerError
from ._follow import FollowedEvent
from ._model import UNSET, Event
from ._pages import Download, Page, Pages
from ._signature import SignatureError, verify_signature
from ._signed import NotVerifiable, VerificationError
from ._verify_events import VerifiedEvents, verify_events
from ._verify_statements import VerifiedStatements, verify_statements
from .client import Client

__all__ = [
    "UNSET",
    "Client",
    "CustodyError",
    "Download",
    "Event",
    "FollowedEvent",
    "NoAnswerError",
    "NotVerifiable",
    "Page",
    "Pages",
    "SignatureError",
    "VaultCopy",
    "VerificationError",
    "VerifiedEvents",
    "VerifiedStatements",
    "catch_up",
    "copy_vault",
    "verify_events",
    "verify_signature",
    "verify_statements",
]
