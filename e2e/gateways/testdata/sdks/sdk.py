"""Calls the API of a model with the SDK of its vendor, as the lines of its input say."""

import gc
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # importing it would ask the network

MESSAGES = [{"role": "user", "content": "hi"}]
BOUND = 23
ASK = {"model": "m", "messages": MESSAGES, "max_tokens": BOUND}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


# Each function returns what makes a call, or a stream, and what knows the last event that a client
# needs. Without options, an SDK tries again, and waits, as it does by itself.


def openai_chat(url, key, options):
    import openai

    return chat(openai.OpenAI(base_url=url + "/v1", api_key=key, **options))


def azure(url, key, options):
    import openai

    version = "2026-01-01"
    return chat(openai.AzureOpenAI(azure_endpoint=url, api_key=key, api_version=version, **options))


def chat(client):
    def call(stream):
        return client.chat.completions.create(**ASK, **(STREAM if stream else {}))

    return call, lambda event: False  # it reads no further than [DONE]


def openai_responses(url, key, options):
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key=key, **options)

    def call(stream):
        return client.responses.create(
            model="m", input="hi", max_output_tokens=BOUND, stream=stream
        )

    return call, lambda event: event.type == "response.completed"


def anthropic(url, key, options):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key=key, **options)
    return (
        lambda stream: client.messages.create(**ASK, stream=stream),
        lambda event: event.type == "message_stop",
    )


def google(url, key, options):
    from google import genai

    http = {"base_url": url}
    if options:
        http["timeout"] = int(options["timeout"] * 1000)
    client = genai.Client(api_key=key, http_options=http)

    def call(stream):
        models = client.models
        generate = models.generate_content_stream if stream else models.generate_content
        return generate(model="m", contents="hi", config={"max_output_tokens": BOUND})

    call.client = client  # which would close with its last reference
    return call, lambda event: event.candidates[0].finish_reason


def litellm(url, key, options, model, base):
    import litellm

    litellm.suppress_debug_info = True

    def call(stream):
        ask = {**ASK, **(STREAM if stream else {}), "model": model}
        return litellm.completion(**ask, api_base=url + base, api_key=key, **options)

    return call, lambda event: getattr(event, "usage", None)


def cohere(url, key, options):
    import cohere

    client = cohere.ClientV2(base_url=url, api_key=key, timeout=options.get("timeout"))
    request = {"max_retries": options["max_retries"]} if options else None

    def call(stream):
        ask = client.chat_stream if stream else client.chat
        return ask(**ASK, request_options=request)

    return call, lambda event: event.type == "message-end"


def ollama(url, key, options):
    import ollama

    fields = {"Authorization": "Bearer " + key}
    client = ollama.Client(host=url, headers=fields, timeout=options.get("timeout"))
    bound = {"num_predict": BOUND}
    return (
        lambda stream: client.chat(model="m", messages=MESSAGES, stream=stream, options=bound),
        lambda event: event.done,
    )


APIS = {
    "openai chat": openai_chat,
    "openai responses": openai_responses,
    "openai azure": azure,
    "anthropic": anthropic,
    "google-genai": google,
    "litellm openai": lambda *a: litellm(*a, "openai/m", "/v1"),
    "litellm anthropic": lambda *a: litellm(*a, "anthropic/m", ""),
    "cohere": cohere,
    "ollama": ollama,
}


def run(do, call, last):
    if do in ("call", "before", "again"):
        return call(False)
    events = call(True)
    for event in events:
        if do == "middle" or do == "end" and last(event):
            break
    if do != "stream" and hasattr(events, "close"):
        events.close()


def attempt(do, call, last):
    try:
        run(do, call, last)
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def answer(api, do, url, key, at_once):
    """The errors of calls at once, with one client."""
    options = {"max_retries": 0, "timeout": 1 if do == "before" else 30}
    call, last = APIS[api](url, key, {} if do == "again" else options)
    with ThreadPoolExecutor(at_once) as pool:
        errors = pool.map(lambda _: attempt(do, call, last), range(at_once))
    return [e for e in errors if e]


answers, sys.stdout = sys.stdout, sys.stderr  # to which an SDK may write
for line in sys.stdin:
    print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)
    if '"middle"' in line or '"end"' in line:
        gc.collect()  # which closes the connections of streams that nobody has closed
