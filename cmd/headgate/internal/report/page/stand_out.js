// Keys that stand out: for which answer about them a limit is right.
(() => {
  "use strict";
  const { plural } = Charts.format;

  // deniedTo is how many requests of a key that stands out a limit denies; null if that is not in
  // the data.
  function deniedTo(data, l, k) {
    if (l.proposal) return k.denied[l.index];
    const listed = data.replay.detail.keys[l.index] ?? [];
    const found = listed.find((d) => d.key === k.key);
    if (found) return found.denied;
    return listed.length === data.replay.detail.denied_keys_total[l.index] ? 0 : null;
  }

  // choice says for which answer about these keys a limit is right.
  function choice(data, l) {
    const { keys } = data.size.stand_out;
    if (keys.some((k) => deniedTo(data, l, k) === null)) {
      return "The page does not list all keys that this limit denies.";
    }
    const denied = keys.filter((k) => deniedTo(data, l, k) > 0);
    const spared = keys.filter((k) => !denied.includes(k));
    const others = l.restDenied ? `, and ${plural(l.restDenied, "request")} of other keys` : "";
    const lead = data.kind === "size" ? "Choose it if" : "Only if";
    if (!denied.length && data.kind !== "size") return "Denies none of these keys.";
    if (!denied.length) {
      return keys.length === 1 ? `Choose it if ${Report.short(keys[0].key)} may not be denied.` :
        `Choose it if ${keys.length === 2 ? "neither" : "none"} of these keys may be denied.`;
    }
    if (spared.length) {
      return `${lead} ${some(denied, `${denied.length} of these keys`)} may be denied` +
        `${others}, but not ${some(spared, `the other ${spared.length}`)}.`;
    }
    return `${lead} ${some(keys, keys.length === 2 ? "both keys" :
      `all ${keys.length} keys`)} may be denied${others}.`;
  }

  const some = (keys, text) => keys.length === 1 ? Report.short(keys[0].key) : text;

  Report.choice = choice;
})();
