"""``POST /api/catalog/refresh``: fetch the model catalogue now. What may go wrong is `proxy.catalogue_refresh`'s."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import COUNT, TEXT, exactly, listing, titled
from troyproxy.errors import UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable, ValidationFailed
from troyproxy.proxy.catalogue_refresh import CatalogueRefresh

PATH: Final = "/api/catalog/refresh"
REFRESHED: Final = titled("Refreshed", exactly(models=COUNT, providers=COUNT, changed=COUNT, warnings=listing(TEXT)))


class CatalogueDesk:
    """The handler. *refresh* None: no ``TROY_MODEL_CATALOG_URL`` is set."""

    def __init__(self, refresh: CatalogueRefresh | None) -> None:
        self._refresh = refresh

    def operations(self) -> list[Operation]:
        """Return what can be done with the catalogue."""
        fails = (UpstreamInvalid, UpstreamUnreachable, UpstreamTimeout)
        say = "Fetch the model catalogue now."
        return [Operation("POST", PATH, self.refresh, "actions", say, {200: REFRESHED}, fails=fails)]

    async def refresh(self, request: AdminRequest) -> Answer:
        """Answer when the catalogue is in force here; other processes are told to fetch it, too.

        422 when there is nowhere to fetch from; 502 and 504 with the reason when it did not come or is no catalogue,
        and then the old one stays.
        """
        del request
        if self._refresh is None:
            said = "there is no catalogue to fetch: set TROY_MODEL_CATALOG_URL and start again"
            raise ValidationFailed(said, details=[{"field": "settings.model_catalog_url", "message": "is not set"}])
        found = await self._refresh.refresh()
        warnings = list(found.warnings)
        if not await self._refresh.order():
            warnings.append(
                "other processes could not be told: the database cannot be written; they fetch it themselves"
            )
        return Answer(
            {"models": found.models, "providers": found.providers, "changed": found.changed, "warnings": warnings}
        )
