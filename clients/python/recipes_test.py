"""Runs the recipes of docs/python.md against the server at HEADGATE_URL."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import headgate
from headgate.testing import FakeClient

URL = os.environ["HEADGATE_URL"]
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def recipe(name: str) -> Any:
    """Return the module that the recipe of this name is."""
    code = re.findall("## %s\n.*?```python\n(.*?)```" % name, PAGE.read_text(), re.S)[0]
    code = code.replace('"http://127.0.0.1:8080"', repr(URL) + ', "secret"')
    module: Any = types.ModuleType(name)
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


class Recipes(unittest.TestCase):
    def test_fastapi(self) -> None:
        from fastapi.testclient import TestClient

        with TestClient(recipe("FastAPI").app, client=("192.0.2.61", 1)) as client:
            statuses = [client.post("/login").status_code for _ in range(6)]
            self.assertEqual(statuses, [200] * 5 + [429])
            self.assertGreater(int(client.post("/login").headers["Retry-After"]), 600)

    def test_django(self) -> None:
        import django
        from django.conf import settings
        from django.test import Client

        django_recipe = recipe("Django")
        settings.configure(
            ROOT_URLCONF="Django",
            ALLOWED_HOSTS=["*"],
            MIDDLEWARE=["Django.limit_by_address"],
            DATABASES={},
        )
        django.setup()
        from django.urls import path

        django_recipe.urlpatterns = [path("", lambda _: django_recipe.HttpResponse("hello"))]
        answers = [Client(REMOTE_ADDR="192.0.2.62").get("/") for _ in range(6)]
        self.assertEqual([answer.status_code for answer in answers], [200] * 5 + [429])
        self.assertGreater(int(answers[5].headers["Retry-After"]), 600)
        django_recipe.limits.close()

    def test_celery(self) -> None:
        from celery.exceptions import Retry

        celery_recipe = recipe("Celery")
        send = celery_recipe.send
        for _ in range(5):
            self.assertEqual(send.apply(args=["ann"]).get(), "sent to ann")
        with mock.patch.object(send, "retry", side_effect=Retry()) as retry:
            self.assertEqual(send.apply(args=["ann"]).state, "RETRY")
        self.assertTrue(600 < retry.call_args.kwargs["countdown"] <= 720)
        celery_recipe.limits.close()
        celery_recipe.limits = FakeClient(math.inf)
        self.assertIsInstance(send.apply(args=["ann"]).result, headgate.Denied)

    def test_langchain(self) -> None:
        langchain_recipe = recipe("LangChain")
        limiter = langchain_recipe.SharedRateLimiter("login", "ip:192.0.2.63")
        granted = [limiter.acquire(blocking=False) for _ in range(3)] + [limiter.acquire()]

        async def run() -> list[bool]:
            async with langchain_recipe.async_limits:
                return [await limiter.aacquire(), await limiter.aacquire(blocking=False)]

        self.assertEqual(granted + asyncio.run(run()), [True] * 5 + [False])
        langchain_recipe.limits.close()


if __name__ == "__main__":
    unittest.main()
