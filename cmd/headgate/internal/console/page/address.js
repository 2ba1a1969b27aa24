// The view in the address of the page, so that it can be sent to a colleague: the chosen rule, and
// the key that is looked at. It stands behind the #, which no server sees.

export function write(view) {
  const named = Object.entries(view).filter(([, text]) => text !== null);
  history.replaceState(null, "", named.length ? `#${new URLSearchParams(named)}`
    : location.pathname + location.search);
}

// read returns {rule, key}, each of which may be null.
export function read() {
  const view = new URLSearchParams(location.hash.slice(1));
  return { rule: view.get("rule"), key: view.get("key") };
}
