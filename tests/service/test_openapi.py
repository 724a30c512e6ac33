"""The service as its own OpenAPI describes it, tried with generated requests over real HTTP."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from asked_site import asked_service
from freshline.service.address import ServiceAddress
from freshline.service.app import service_app
from patience import PATIENCE_S


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceAddress]:
    with asked_service(tmp_path_factory.mktemp("described")) as (_, _, address):
        yield address


SCHEMA = schemathesis.openapi.from_dict(service_app(None).openapi())


@SCHEMA.include(path_regex="^/v1/(query|classes)$").parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_description_allows_or_not_is_answered_as_it_says(
    case: schemathesis.Case, address: ServiceAddress
) -> None:
    headers = {"Authorization": f"Bearer {address.token}"}
    response = case.call(base_url=address.url, headers=headers, timeout=PATIENCE_S)
    # A body may be as described, and its SQL or its class nothing that anybody knows.
    case.validate_response(response, excluded_checks=[positive_data_acceptance])
