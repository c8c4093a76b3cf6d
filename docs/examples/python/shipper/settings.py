"""What the program is told by its environment."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    api_url: str
    client_id: str
    client_secret: str
    # By names of your own: what each seller's consent gave, or None for the application's owner, who needs none.
    sellers: dict[str, str | None]
    # Where the marketplace reaches the receiver, and the local port behind that address.
    webhook_url: str
    port: int
    # The folder of everything that has to survive a restart.
    state: Path
    catch_up_seconds: float
    # The folder with each seller's file of changes of offers, if there are any.
    changes: Path | None

    @classmethod
    def from_environment(cls) -> "Settings":
        sellers, changes = os.environ.get("SELLERS"), os.environ.get("CHANGES")
        return cls(
            api_url=os.environ["API_URL"].rstrip("/"),
            client_id=os.environ["CLIENT_ID"],
            client_secret=os.environ["CLIENT_SECRET"],
            sellers=_named(json.loads(Path(sellers).read_text())) if sellers else {"owner": None},
            webhook_url=os.environ["WEBHOOK_URL"].rstrip("/"),
            port=int(os.environ.get("PORT", "9000")),
            state=Path(os.environ.get("STATE", "state")),
            catch_up_seconds=float(os.environ.get("CATCH_UP_SECONDS", "300")),
            changes=Path(changes) if changes else None,
        )


def _named(sellers: dict[str, str | None]) -> dict[str, str | None]:
    for name in sellers:
        if not re.fullmatch("[A-Za-z0-9_-]+", name):
            raise ValueError(f"{name!r} cannot be part of a file's name and of a URL")
    return sellers
