// How many clients share a key, and which other rules use the same kind of key.

export const isPattern = (key) => key.includes("*");

// isShared reports whether a key is that of all requests of its rule, or of all that lack a header
// or a cookie: nobody is behind it who could be banned.
export function isShared(key) {
  if (key === "all") return true; // also of a rule that has a key by now: keys begin with a source
  return key.split("|").every((part) => part.startsWith("const:") || isMissing(part));
}

const isMissing = (part) => part === "header:" || part === "cookie:";
const isAny = (part) => /^([a-z]+:)?\*+$/.test(part);

// breadth says whose a key is: {text, confirm} of a pattern, {text} of a shared key, or null.
export function breadth(model, rule, key) {
  if (isPattern(key)) return ofPattern(rule, key);
  if (!isShared(key)) return null;
  const whose = key.split("|").some(isMissing)
    ? "all requests without that header or cookie share it"
    : `all requests that rule ${rule} applies to share it`;
  return { text: `This key is not one client: ${whose}.` };
}

function ofPattern(rule, key) {
  const everybody = key.split("|").every(isAny);
  return {
    text: everybody ? `This pattern matches every key of rule ${rule}: all clients.`
      : `This is a pattern: it stands for all keys that match it, also for new ones.`,
    confirm: everybody ? "Deny all clients" : "Deny all keys that match",
  };
}

// siblings returns other rules with keys of the same form, in which key is not banned.
export function siblings(model, rule, key) {
  const form = model.config?.rules.find((r) => r.name === rule)?.key;
  if (!form || isPattern(key)) return [];
  return model.config.rules.filter((r) => r.kind !== "domain" && r.name !== rule
    && r.key === form && r.mode !== "off" && !model.override(r.name, key)?.ban);
}

// inRules names one rule or several.
export const inRules = (names) =>
  (names.length === 1 ? `rule ${names[0]}` : `rules ${listOf(names)}`);

const most = 6;

// listOf joins names, but not too many.
export function listOf(names) {
  if (names.length > most) {
    return `${names.slice(0, most - 1).join(", ")} and ${names.length - most + 1} more`;
  }
  return names.length < 2 ? names.join("")
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
