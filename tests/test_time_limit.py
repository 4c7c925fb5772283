"""Every test has a limit: one that hangs does not stop all others for ever."""

from __future__ import annotations

import pytest


def test_every_test_has_a_limit(request):
    assert float(request.config.getini("timeout")) == 300
    assert request.config.getini("timeout_method") == "thread"
    assert request.config.pluginmanager.hasplugin("timeout")


@pytest.mark.torture
def test_long_tests_have_more(request):
    assert request.node.get_closest_marker("timeout").args == (3600,)
