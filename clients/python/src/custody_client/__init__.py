"""The client of the Custody Data Service.

``Client`` calls the API, ``verify_signature`` verifies deliveries, and ``custody_client.models`` has the types of the results.
"""

from ._errors import CustodyError, NoAnswerError
from ._follow import FollowedEvent
from ._model import UNSET, Event
from ._pages import Download, Page, Pages
from ._signature import SignatureError, verify_signature
from .client import Client

__all__ = [
    "UNSET",
    "Client",
    "CustodyError",
    "Download",
    "Event",
    "FollowedEvent",
    "NoAnswerError",
    "Page",
    "Pages",
    "SignatureError",
    "verify_signature",
]
