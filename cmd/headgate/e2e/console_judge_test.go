package e2e

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
)

// judgeScript defines model(rules, past, more), whose history ends now: past has a list of the
// denials of keys that were not banned, of those that were, of what was allowed, and of what was
// decided without the store, for each rule and each of the last steps.
const judgeScript = `
	const { Model } = await import("./model.js");
	const { judge } = await import("./verdict.js");
	const now = 1_800_000_000_000;
	const model = (rules, past, more = {}) => {
		const m = new Model();
		const steps = Array.from({ length: 180 }, (_, i) => {
			const counts = Object.fromEntries(Object.entries(past).map(([name, list]) => {
				const [open, banned, allowed, degraded = 0] = list.at(i - 180) ?? list[0];
				return [name, [allowed, open + banned, 0, 0, degraded, banned]];
			}));
			const total = Object.values(counts).reduce((a, b) => a.map((n, j) => n + b[j]), [0, 0, 0, 0, 0, 0]);
			return { at: now / 1000 - (180 - i) * 5, rules: counts, total };
		});
		m.setHistory({ step_s: 5, steps });
		m.config = { rules: [], overrides: more.overrides ?? [], changes: more.changes ?? [] };
		m.acts = (more.acts ?? []).map((a) => ({ limits: [], ...a }));
		m.lost = more.lost ?? null;
		m.addState({
			at: now, instances: [{ name: "a", started_at: now - 1e9 }], denied_since: now - 600_000,
			store: { state: "up" }, ...more.state,
			rules: Object.entries(rules).map(([name, r]) => ({
				name, kind: "rule", mode: "enforce", file_mode: "enforce", allowed: 0, denied: 0,
				shadow_denied: 0, error: 0, degraded: 0, banned: 0, denied_keys: [], ...r,
			})),
		});
		return m;
	};
	const key = (name, per_s, ago) => ({ key: name, per_s, first: now - ago * 1000, denied: 1, last: now });
	const steps = (n, counts) => Array.from({ length: n }, () => counts);
	const ban = (rule, key) => ({ rule, key, ban: true, limits: [] });
	const said = (m) => { const v = judge(m, now); return [v.level, v.title, v.lines.join(" / "), v.culprit?.key ?? "", v.advice].join(" | "); };
	const seen = (requests, kinds, paths = { "/login": requests }) => ({ requests, methods: { POST: requests }, paths, agents: { a: requests },
		kinds: { paths: Object.keys(paths).length, agents: 1, clients: 1, forwarded: 0, ...kinds } });
	const office = [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])];
`

// The headline is of one incident: its rule, its key, its time, and what began it.
func TestConsoleJudges(t *testing.T) {
	t.Parallel()
	p := operate(t).console(withToken())
	for name, c := range map[string]struct{ script, want string }{
		"denials of a banned key are not the beginning of others": {
			`model({ login: { denied: 40, banned: 40, denied_keys: [key("ip:bot", 40, 500)] },
				pages: { allowed: 50, denied: 24, denied_keys: [key("ip:office", 24, 60)] } },
				{ login: [...steps(80, [0, 0, 0]), ...steps(50, [200, 0, 0]), ...steps(50, [0, 200, 0])],
				pages: [...steps(168, [0, 0, 250]), ...steps(12, [120, 0, 250])] },
				{ overrides: [ban("login", "ip:bot")] })`,
			"bad | 24 denials a second since TIME (1 minute) | Banned keys: another 40 denials a second, which are not counted here. | ip:office | ban",
		},
		"a banned bot hides nothing": {
			`model({ pages: { allowed: 1200, denied: 79, banned: 40, denied_keys: [key("ip:bot", 40, 500), key("ip:new", 39, 100)] } },
				{ pages: [...steps(160, [0, 200, 6000]), ...steps(20, [195, 200, 6000])] },
				{ overrides: [ban("pages", "ip:bot")] })`,
			"bad | 39 denials a second since TIME (1 minute) | Banned keys: another 40 denials a second, which are not counted here. | ip:new | ban",
		},
		"a new key in a rule that denied others": {
			`model({ pages: { allowed: 20, denied: 60, denied_keys: [key("ip:new", 50, 120), key("ip:old", 10, 800)] } },
				{ pages: [...steps(100, [0, 0, 100]), ...steps(80, [200, 0, 100])] })`,
			"bad | 60 denials a second since TIME (2 minutes) | Another 16.7% are from ip:old. | ip:new | ban",
		},
		"shares of a mean that lags behind are not added up": {
			`model({ pages: { allowed: 20, denied: 40, denied_keys: [key("ip:new", 36, 120), key("ip:old", 18, 800)] } },
				{ pages: [...steps(100, [0, 0, 100]), ...steps(80, [200, 0, 100])] })`,
			"bad | 40 denials a second since TIME (2 minutes) | Another 45% are from ip:old. | ip:new | ban",
		},
		"two causes are two sentences": {
			`model({ login: { denied: 71, denied_keys: [key("ip:bot", 71, 300)] },
				pages: { allowed: 9, denied: 29, denied_keys: [key("ip:office", 10, 60), key("ip:old", 0.01, 500)] } },
				{ login: [...steps(120, [0, 0, 0]), ...steps(60, [355, 0, 0])], pages: [...steps(168, [0, 0, 45]), ...steps(12, [145, 0, 45])] })`,
			"bad | 71 denials a second since TIME (5 minutes) | Rule pages denies 29 a second since TIME (1 minute), 34.5% of them from ip:office. | ip:bot | ban",
		},
		"a change of the rule is the cause": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 60, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ changes: [{ at: now - 60_000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }] })`,
			"bad | 82 denials a second since TIME, a second after the rules changed | Rule pages denies 97.6% of its requests. |  | change",
		},
		"also if a burst was used up first": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 60, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ changes: [{ at: now - 110_000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }] })`,
			"bad | 82 denials a second since TIME, 51 seconds after the rules changed |  | ip:a | look",
		},
		"of many keys": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 9, 59), key("ip:b", 9, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ changes: [{ at: now - 110_000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }] })`,
			"bad | 82 denials a second since TIME, 51 seconds after the rules changed | Rule pages denies 97.6% of its requests, of 2 keys. |  | change",
		},
		"a change of another rule is not": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 60, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ changes: [{ at: now - 60_000, removed: [], added: ["rule other: 12/m"] }] })`,
			"bad | 82 denials a second since TIME (59 seconds) |  | ip:a | ban",
		},
		"a switch by hand is not calm": {
			`model({ pages: { allowed: 201, shadow_denied: 101, mode: "shadow" } }, { pages: steps(180, [0, 0, 1000]) })`,
			"warn | Rule pages is switched by hand | Rule pages is in mode shadow, and enforce in the file: it would deny 50.2% of its requests, 101 a second. |  | mode",
		},
		"a rule that is another one on an instance is not a client's fault": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 60, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: 0,
				differs: { removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] } }] } })`,
			"bad | 82 denials a second since TIME (59 seconds): instances have different rules | Rule pages denies 97.6% of its requests. / b has rule pages: 12/m, and this instance has rule pages: 120/m. Instances agree when all have loaded the same files. |  | fleet",
		},
		"nor is its limit too low": {
			`model({ pages: { allowed: 10, denied: 40, denied_keys: Array.from({ length: 20 }, (_, i) => key("ip:" + i, 2, 59)) } }, { pages: office },
				{ state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: 0, differs: { removed: ["rule pages: 120/m"], added: [] } }] } })`,
			"bad | 40 denials a second since TIME (59 seconds): instances have different rules | Rule pages denies 80% of its requests, of 20 keys. / b lacks rule pages: 120/m. Instances agree when all have loaded the same files. |  | fleet",
		},
		"nor is its ban without effect": {
			`model({ pages: { mode: "shadow", file_mode: "shadow", allowed: 50, denied: 50, banned: 50, denied_keys: [key("ip:bot", 50, 59)] } },
				{ pages: steps(180, [0, 250, 250]) }, { overrides: [ban("pages", "ip:bot")], state: { instances: [{ name: "a", started_at: 0 },
				{ name: "b", started_at: 0, differs: { removed: ["rule pages: 12/m, shadow"], added: ["rule pages: 12/m"] } }] } })`,
			"warn | Instances have different rules | b has rule pages: 12/m, and this instance has rule pages: 12/m, shadow. Instances agree when all have loaded the same files. |  | fleet",
		},
		"different rules are not calm": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) },
				{ state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: 0,
				differs: { removed: ["rule old: 1/s"], added: [] } }] } })`,
			"warn | Instances have different rules | b lacks rule old: 1/s. Instances agree when all have loaded the same files. |  | fleet",
		},
		"what a rule denied before it was switched by hand is no incident": {
			`model({ pages: { allowed: 60, denied: 40, shadow_denied: 20, mode: "shadow", denied_keys: [key("all", 60, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [400, 0, 10])] })`,
			"warn | Rule pages is switched by hand | Rule pages is in mode shadow, and enforce in the file: it would deny 20% of its requests, 20 a second. |  | mode",
		},
		"a key that was just banned is not many keys": {
			`model({ pages: { denied: 40, banned: 10, denied_keys: [key("ip:bot", 40, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] }, { overrides: [ban("pages", "ip:bot")] })`,
			"calm | The top denied key is banned | Rule pages denies every request of this key, 40 a second. Keys that are not banned: 0 denials a second. | ip:bot | ",
		},
		"what was denied before a ban is of the key that was banned": {
			`model({ pages: { denied: 45, banned: 10, denied_keys: [key("ip:bot", 40, 59), key("ip:new", 4, 20)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ overrides: [ban("pages", "ip:bot")], acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 3000 }] })`,
			"bad | 5.0 denials a second since TIME (20 seconds) | Banned keys: another 40 denials a second, which are not counted here. | ip:new | ban",
		},
		"some seconds after a ban, the numbers say what they say": {
			`model({ pages: { denied: 45, banned: 10, denied_keys: [key("ip:bot", 40, 59), key("ip:new", 4, 20)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ overrides: [ban("pages", "ip:bot")], acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 20000 }] })`,
			"bad | 5.0 denials a second since TIME (20 seconds) | Banned keys: another 40 denials a second, which are not counted here. | ip:new | ban",
		},
		"just after a ban, keys that are not in the list count": {
			`model({ pages: { denied: 40, banned: 10, denied_keys: [key("ip:bot", 12, 59), key("ip:new", 0.1, 20)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ overrides: [ban("pages", "ip:bot")], acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 3000 }] })`,
			"bad | 28 denials a second since TIME (1 minute) | Rule pages denies 70% of its requests. / Banned keys: another 12 denials a second, which are not counted here. |  | ",
		},
		"a banned key that is not the top denied one is not called that": {
			`model({ small: { allowed: 90, denied: 2, banned: 2, denied_keys: [key("ip:bot", 2, 59)] },
				pages: { allowed: 970, denied: 30, denied_keys: [key("ip:new", 30, 500)] } },
				{ small: steps(180, [0, 10, 450]), pages: steps(180, [150, 0, 4850]) }, { overrides: [ban("small", "ip:bot")] })`,
			"calm | Nothing unusual |  |  | ",
		},
		"a ban without effect does not hide a slow store": {
			`model({ pages: { mode: "shadow", file_mode: "shadow", allowed: 90, shadow_denied: 9, denied_keys: [key("ip:bot", 9, 59)] } },
				{ pages: steps(180, [0, 0, 450]) }, { overrides: [ban("pages", "ip:bot")], state: { store: { kind: "redis", state: "slow" } } })`,
			"warn | A banned key is not denied | Rule pages is in mode shadow, so its ban of ip:bot has no effect: 9.0 of its requests a second pass the rule. / Requests wait for the store. | ip:bot | mode",
		},
		"a ban that stops all denials is not an incident": {
			`model({ pages: { denied: 40, banned: 10, denied_keys: [key("ip:bot", 40, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ overrides: [ban("pages", "ip:bot")], acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 3000 }] })`,
			"calm | The top denied key is banned | Rule pages denies every request of this key, 40 a second. Keys that are not banned: 0 denials a second. | ip:bot | ",
		},
		"the key of the headline stays while it is not far behind": {
			`(() => { const m = model({ pages: { allowed: 9, denied: 50, denied_keys: [key("ip:a", 22, 60), key("ip:b", 28, 60)] } },
				{ pages: [...steps(168, [0, 0, 45]), ...steps(12, [250, 0, 45])] });
				m.told = { rule: "pages", culprit: { key: "ip:a" } };
				return m; })()`,
			"bad | 50 denials a second since TIME (1 minute) | Another 56% are from ip:b. | ip:a | ban",
		},
		"the key of the headline goes if it is far behind": {
			`(() => { const m = model({ pages: { allowed: 9, denied: 50, denied_keys: [key("ip:a", 18, 60), key("ip:b", 32, 60)] } },
				{ pages: [...steps(168, [0, 0, 45]), ...steps(12, [250, 0, 45])] });
				m.told = { rule: "pages", culprit: { key: "ip:a" } };
				return m; })()`,
			"bad | 50 denials a second since TIME (1 minute) | Another 36% are from ip:a. | ip:b | ban",
		},
		"so does its rule": {
			`(() => { const m = model({ login: { denied: 20, denied_keys: [key("ip:bot", 20, 300)] },
				pages: { denied: 22, denied_keys: [key("ip:office", 22, 60)] } },
				{ login: [...steps(120, [0, 0, 0]), ...steps(60, [100, 0, 0])], pages: [...steps(168, [0, 0, 0]), ...steps(12, [110, 0, 0])] });
				m.told = { rule: "login", culprit: { key: "ip:bot" } };
				return m; })()`,
			"bad | 20 denials a second since TIME (5 minutes) | Rule pages denies 22 a second since TIME (1 minute), 100% of them from ip:office. | ip:bot | ban",
		},
		"a rule that denies most of few requests is not calm": {
			`model({ login: { allowed: 0.2, denied: 0.8, denied_keys: [key("header:ceo", 0.8, 55)] }, pages: { allowed: 35 } },
				{ login: [...steps(168, [0, 0, 1]), ...steps(12, [4, 0, 1])], pages: steps(180, [0, 0, 175]) })`,
			"bad | Rule login denied 80% of its last 30 requests since TIME (55 seconds) |  | header:ceo | ban",
		},
		"nor if it denied none in the last seconds": {
			`model({ login: {}, pages: { allowed: 35 } }, { login: [...steps(168, [0, 0, 1]), ...steps(5, [8, 0, 1]), ...steps(7, [2, 0, 1]), [0, 0, 0]], pages: steps(180, [0, 0, 175]) })`,
			"bad | Rule login denied 66.7% of its last 15 requests since TIME (1 minute) | It denied 10 of them. |  | ",
		},
		"fewer than ten requests have no share": {
			`model({ login: { denied: 0.3 }, pages: { allowed: 35 } }, { login: [...steps(176, [0, 0, 0]), ...steps(4, [2, 0, 0])], pages: steps(180, [0, 0, 175]) })`,
			"calm | Nothing unusual |  |  | ",
		},
		"a rule that was bad stays for a while": {
			`(() => { const m = model({ pages: { denied: 0.6, allowed: 40, denied_keys: [key("ip:a", 0.6, 59)] } }, { pages: [...steps(168, [0, 0, 200]), ...steps(12, [8, 0, 200])] });
				m.loud.set("pages", now - 14_000);
				return m; })()`,
			"bad | Rule pages denied 3.85% of its last 1,248 requests since TIME (59 seconds) |  | ip:a | ban",
		},
		"and not longer": {
			`(() => { const m = model({ pages: { denied: 0.6, allowed: 40, denied_keys: [key("ip:a", 0.6, 59)] } }, { pages: [...steps(168, [0, 0, 200]), ...steps(12, [8, 0, 200])] });
				m.loud.set("pages", now - 16_000);
				return m; })()`,
			"calm | Nothing unusual |  |  | ",
		},
		"nor after an operator has acted": {
			`(() => { const m = model({ pages: { denied: 0.6, allowed: 40 } }, { pages: [...steps(168, [0, 0, 200]), ...steps(12, [8, 0, 200])] },
				{ acts: [{ act: "raise", rule: "pages", key: "ip:a", at: now - 3_000 }] });
				m.loud.set("pages", now - 4_000);
				return m; })()`,
			"calm | Nothing unusual |  |  | ",
		},
		"different rules explain more than an instance that was gone": {
			`model({ pages: { allowed: 20, denied: 4, denied_keys: [key("ip:a", 1, 50), key("ip:b", 2, 50)] } }, { pages: [...steps(169, [0, 0, 200]), ...steps(11, [20, 0, 180])] },
				{ state: { gone: [{ name: "web-1", started_at: now - 9e7, at: now - 53_000 }], instances: [{ name: "a", started_at: now - 9e7 },
				{ name: "web-2", started_at: now - 57_000, differs: { removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] } }] } })`,
			"bad | 4.0 denials a second since TIME (55 seconds): instances have different rules | Rule pages denies 16.7% of its requests, of 2 keys. / At TIME, web-1 was gone. / web-2 has rule pages: 12/m, and this instance has rule pages: 120/m. Instances agree when all have loaded the same files. |  | fleet",
		},
		"a change explains more, and the other cause has a line": {
			`model({ pages: { allowed: 2, denied: 82, denied_keys: [key("ip:a", 60, 59)] } }, { pages: [...steps(168, [0, 0, 400]), ...steps(12, [410, 0, 10])] },
				{ changes: [{ at: now - 62_000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }],
				state: { gone: [{ name: "web-1", started_at: now - 9e7, at: now - 60_000 }] } })`,
			"bad | 82 denials a second since TIME, 3 seconds after the rules changed | Rule pages denies 97.6% of its requests. / Also, at TIME: web-1 was gone. |  | change",
		},
		"a raise begins the denials of another rule": {
			`model({ budget: { allowed: 2, denied: 4, denied_keys: [key("all", 4, 50)] } }, { budget: [...steps(170, [0, 0, 20]), ...steps(10, [20, 0, 10])] },
				{ acts: [{ act: "raise", rule: "model", key: "header:cust-77", limits: ["9/m"], at: now - 57_000 }] })`,
			"bad | 4.0 denials a second since TIME, 7 seconds after the raise of header:cust-77 in rule model | This key is not one client: all requests that rule budget applies to share it. Look for what sends so much. | all | look",
		},
		"an attack on one account": {
			`model({ pages: { denied: 40, denied_keys: [{ ...key("header:ceo@example.com", 40, 59), seen: seen(64, { clients: 64 }) }] } }, { pages: office })`,
			"bad | 40 denials a second since TIME (59 seconds) | At least 64 addresses use this key: a client with many servers, or an attack on one account. The rule holds it to its limit; a ban locks out its owner, too. | header:ceo@example.com | look",
		},
		"a proxy that is not trusted": {
			`model({ pages: { denied: 40, denied_keys: [{ ...key("ip:10.0.0.9", 40, 59), seen: seen(64, { forwarded: 40, agents: 5 }) }] } }, { pages: office })`,
			"bad | 40 denials a second since TIME (59 seconds) | Its requests name 40 addresses in X-Forwarded-For, which have no effect: if it is a proxy of yours, add it to trust in the file; else it invents them, and can be banned. | ip:10.0.0.9 | look",
		},
		"a client that retries without pause": {
			`model({ pages: { denied: 40, denied_keys: [{ ...key("ip:a", 40, 59), seen: seen(64, {}) }] } }, { pages: office })`,
			"bad | 40 denials a second since TIME (59 seconds) | It repeats /login only, like a client that retries without pause. | ip:a | ban",
		},
		"a client that sends two requests a second does not": {
			`model({ pages: { denied: 2, denied_keys: [{ ...key("ip:a", 2, 59), seen: seen(64, {}) }] } }, { pages: [...steps(168, [0, 0, 9]), ...steps(12, [10, 0, 9])] })`,
			"bad | 2.0 denials a second since TIME (59 seconds) |  | ip:a | ban",
		},
		"denials that are over offer no switch": {
			`(() => { const m = model({ pages: { allowed: 82 } }, { pages: [...steps(168, [0, 0, 400]), ...steps(10, [100, 0, 300]), ...steps(2, [0, 0, 400])] },
				{ changes: [{ at: now - 60_000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }] });
				m.loud.set("pages", now - 9000);
				return m; })()`,
			"warn | Rule pages denied 16.7% of its last 2,400 requests since TIME, as the rules changed | It denied 400 of them. |  | ",
		},
		"the time of the headline stays while it is about the same": {
			`(() => { const m = model({ pages: { allowed: 9, denied: 50, denied_keys: [key("ip:a", 9, 54), key("ip:b", 9, 53)] } },
				{ pages: [...steps(169, [0, 0, 45]), ...steps(11, [250, 0, 45])] });
				m.told = { rule: "pages", culprit: null, start: now - 59_000 };
				return m; })()`,
			"bad | 50 denials a second since TIME (59 seconds) | Rule pages denies 84.7% of its requests, of 2 keys. |  | ",
		},
		"denials that are in no step that is over began after it": {
			`model({ pages: { allowed: 9, denied: 9, denied_keys: [{ ...key("ip:a", 2, -2), first: now + 2000 }, { ...key("ip:b", 2, -3), first: now + 3000 }] } },
				{ pages: steps(180, [0, 0, 45]) }, { changes: [{ at: now - 3000, removed: ["rule pages: 120/m"], added: ["rule pages: 12/m"] }] })`,
			"bad | 9.0 denials a second since TIME, 5 seconds after the rules changed | Rule pages denies 50% of its requests, of 2 keys. |  | change",
		},
		"a scraper": {
			`model({ pages: { denied: 40, denied_keys: [{ ...key("ip:a", 40, 59), seen: seen(64, { paths: 60 }, { "/search/*": 64 }) }] } }, { pages: office })`,
			"bad | 40 denials a second since TIME (59 seconds) |  | ip:a | ban",
		},
		"a limit that is too low for many": {
			`model({ pages: { allowed: 10, denied: 40, denied_keys: Array.from({ length: 20 }, (_, i) => key("ip:" + i, 2, 59)), more_keys: 9 } }, { pages: office })`,
			"bad | 40 denials a second since TIME (59 seconds) | Rule pages denies 80% of its requests, of more than 20 keys. If they are ordinary clients, its limit is too low. |  | mode",
		},
		"a clock that is behind": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) }, { state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: 0, clock_ms: -300_000 }] } })`,
			"warn | Clocks differ | The clock of b is 5 minutes behind: its times are wrong, such as \"since\", and its counts are in other steps. |  | ",
		},
		"lost overrides are said first": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) }, { lost: { at: now - 60_000, count: { ban: 2, limits: 1, mode: 0 } },
				state: { store: { state: "slow" } } })`,
			"warn | 2 bans and 1 raise were lost | Redis lost its data at TIME: 2 bans and 1 raise were lost. For an hour, they can be put back. / Requests wait for the store. |  | ",
		},
		"also before there is traffic": {
			`model({ pages: {} }, {}, { lost: { at: now - 60_000, count: { ban: 1, limits: 0, mode: 0 } } })`,
			"warn | 1 ban was lost | Redis lost its data at TIME: 1 ban was lost. For an hour, they can be put back. |  | ",
		},
		"a rule in shadow has a share": {
			`model({ pages: { allowed: 100, shadow_denied: 49, mode: "shadow", denied_keys: [{ ...key("ip:a", 40, 9), shadow_denied: 1 }, { ...key("ip:b", 9, 9), shadow_denied: 1 }] } }, { pages: steps(180, [0, 0, 500]) })`,
			"warn | Rule pages is switched by hand | Rule pages is in mode shadow, and enforce in the file: it would deny 49% of its requests, 49 a second, of 2 keys. |  | mode",
		},
		"a slow store says since when": {
			`model({ pages: { allowed: 100, degraded: 15 } }, { pages: [...steps(174, [0, 0, 500]), ...steps(6, [0, 0, 500, 75])] },
				{ state: { store: { state: "slow", when_store_fails: "open" } } })`,
			"warn | The store is slow since TIME | Requests wait for the store, and 15 decisions a second are made without it. These are allowed without limits (when_store_fails: open). |  | ",
		},
		"a store that is down says since when, also if it was slow first": {
			`model({ pages: { allowed: 100, degraded: 100 } }, { pages: [...steps(168, [0, 0, 500]), ...steps(6, [0, 0, 500, 75]), ...steps(6, [0, 0, 500, 500])] },
				{ state: { store: { state: "down", when_store_fails: "share", knows_instances: true } } })`,
			"bad | The store is down since TIME | Requests that need it are decided by each instance, by its share of each limit (when_store_fails: share). 100 decisions a second are made this way. |  | ",
		},
		"a key of many is no other one": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 10, 59), key("ip:b", 10, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] })`,
			"bad | 40 denials a second since TIME (59 seconds) | Rule pages denies 100% of its requests, of 2 keys. |  | ",
		},
		"a raised key may be denied no more": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 40, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ overrides: [{ rule: "pages", key: "ip:a", limits: ["9/m"] }] })`,
			"bad | 40 denials a second since TIME (59 seconds) | It was raised to 9/m. | ip:a | look",
		},
		"a switch by hand says until when": {
			`(() => { const m = model({ pages: { mode: "shadow" } }, { pages: steps(180, [0, 0, 1000]) });
				m.config.modes = [{ rule: "pages", mode: "shadow", until: new Date(now + 600_000).toISOString() }];
				return m; })()`,
			"warn | Rule pages is switched by hand | Rule pages is in mode shadow until TIME, and enforce in the file: it would deny 0 requests a second. |  | mode",
		},
		"files with errors are not calm": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) },
				{ state: { instances: [{ name: "a", started_at: 0, config: { error: { text: "x", at: 1 } } }] } })`,
			"warn | The files have errors | The files of a have errors. |  | ",
		},
		"nor are they with a ban": {
			`model({ pages: { allowed: 60, denied: 40, banned: 40, denied_keys: [key("ip:bot", 40, 500)] } }, { pages: steps(180, [0, 200, 300]) },
				{ overrides: [ban("pages", "ip:bot")], state: { instances: [{ name: "a", started_at: 0, config: { error: { text: "x", at: 1 } } }] } })`,
			"warn | The files have errors | The files of a have errors. |  | ",
		},
		"a slow store does not hide files with errors": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) },
				{ state: { store: { state: "slow" }, instances: [{ name: "a", started_at: 0, config: { error: { text: "x", at: 1 } } }] } })`,
			"warn | The files have errors | The files of a have errors. / Requests wait for the store. |  | ",
		},
		"a switch by hand hides neither a slow store nor different rules": {
			`model({ pages: { mode: "shadow" } }, { pages: steps(180, [0, 0, 500]) }, { state: { store: { state: "slow" },
				instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: 0, differs: { removed: ["rule old: 1/s"], added: [] } }] } })`,
			"warn | Instances have different rules | b lacks rule old: 1/s. Instances agree when all have loaded the same files. / Requests wait for the store. / Rule pages is in mode shadow, and enforce in the file: it would deny 0 requests a second. |  | fleet",
		},
		"nor do denials": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 40, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] }, { state: { store: { state: "slow" } } })`,
			"bad | 40 denials a second since TIME (59 seconds) | Requests wait for the store. | ip:a | ban",
		},
		"denials after some seconds of calm are new": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 40, 300)] } },
				{ pages: [...steps(120, [0, 0, 400]), ...steps(43, [200, 0, 10]), ...steps(5, [0, 0, 400]), ...steps(12, [200, 0, 10])] })`,
			"bad | 40 denials a second since TIME (1 minute) |  | ip:a | ban",
		},
		"an instance that started after the first denial is no cause": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 9, 59), key("ip:b", 9, 59)] } },
				{ pages: [...steps(160, [0, 0, 400]), ...steps(8, [1, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: now - 62_000 }] } })`,
			"bad | 40 denials a second since TIME (59 seconds) | Rule pages denies 100% of its requests, of 2 keys. |  | ",
		},
		"one that started just before it is": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:a", 9, 59), key("ip:b", 9, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ state: { instances: [{ name: "a", started_at: 0 }, { name: "b", started_at: now - 62_000 }] } })`,
			"bad | 40 denials a second since TIME, 3 seconds after b started | Rule pages denies 100% of its requests, of 2 keys. |  | ",
		},
		"just after a ban was undone, no key is banned": {
			`model({ pages: { denied: 40, banned: 30, denied_keys: [key("ip:bot", 40, 59)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] },
				{ acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 9000, undone: { at: now - 3000 } }] })`,
			"bad | 40 denials a second since TIME (59 seconds) |  | ip:bot | ban",
		},
		"a ban that only another instance knows is one": {
			`model({ pages: { allowed: 60, denied: 40, banned: 40, denied_keys: [key("ip:bot", 40, 500)] } }, { pages: steps(180, [0, 200, 300]) })`,
			"calm | Nothing unusual |  |  | ",
		},
		"an undone ban is no new one": {
			`model({ pages: { denied: 100, banned: 66, denied_keys: [key("ip:bot", 66, 500), key("ip:new", 5, 20)] } },
				{ pages: [...steps(168, [0, 0, 400]), ...steps(12, [170, 330, 10])] },
				{ overrides: [ban("pages", "ip:bot")], acts: [{ act: "ban", rule: "pages", key: "ip:z", at: now - 9000, undone: { at: now - 8000 } }] })`,
			"bad | 34 denials a second since TIME (1 minute) | Rule pages denies 34% of its requests. / Banned keys: another 66 denials a second, which are not counted here. |  | ",
		},
		"an override of another key is no reason to switch the rule": {
			`model({ login: { denied: 80, denied_keys: [key("ip:bot", 80, 50)] } }, { login: [...steps(170, [0, 0, 0]), ...steps(10, [400, 0, 0])] },
				{ changes: [{ at: now - 60_000, removed: [], added: ["override of login for ip:other: ban"] }] })`,
			"bad | 80 denials a second since TIME, 10 seconds after the rules changed |  | ip:bot | ban",
		},
		"a banned key that the headline named is not the top one for ever": {
			`(() => { const m = model({ pages: { allowed: 970, denied: 48, banned: 20, denied_keys: [key("ip:bot", 20, 500), key("ip:new", 28, 500)] } },
				{ pages: steps(180, [140, 100, 4850]) }, { overrides: [ban("pages", "ip:bot")] });
				m.told = { rule: "pages", culprit: { key: "ip:bot" } };
				return m; })()`,
			"calm | Nothing unusual |  |  | ",
		},
		"denials do not hide decisions that fail": {
			`model({ login: { denied: 40, error: 9, denied_keys: [key("ip:bot", 40, 60)] } }, { login: [...steps(168, [0, 0, 10]), ...steps(12, [200, 0, 10])] })`,
			"bad | 40 denials a second since TIME (1 minute) | 9.0 decisions a second fail. | ip:bot | ban",
		},
		"denials hide nothing else": {
			`model({ login: { denied: 40, error: 9, denied_keys: [key("ip:bot", 40, 60)] },
				pages: { mode: "shadow", file_mode: "shadow", allowed: 90, shadow_denied: 9, denied_keys: [key("ip:bad", 9, 59)] } },
				{ login: [...steps(168, [0, 0, 10]), ...steps(12, [200, 0, 10])], pages: steps(180, [0, 0, 450]) },
				{ overrides: [ban("pages", "ip:bad")], state: { store: { kind: "redis", state: "slow" }, instances: [{ name: "a", started_at: now - 1e9 },
					{ name: "b", started_at: now - 1e9, config: { error: {} }, differs: { removed: ["rule old: 1/s"], added: [] } }] } })`,
			"bad | 40 denials a second since TIME (1 minute) | Banned keys: another 9.0 denials a second, which are not counted here. / Rule pages is in mode shadow, so its ban of ip:bad has no effect: 9.0 of its requests a second pass the rule. / b lacks rule old: 1/s. Instances agree when all have loaded the same files. / 9.0 decisions a second fail. / The files of b have errors. / Requests wait for the store. | ip:bot | ban",
		},
		"decisions that fail are not calm": {
			`model({ pages: { error: 50 } }, { pages: steps(180, [0, 0, 500]) })`,
			"warn | Decisions fail | 50 decisions a second fail. |  | ",
		},
		"what a slow store does not decide": {
			`model({ pages: { allowed: 100, degraded: 15 } }, { pages: steps(180, [0, 0, 500]) },
				{ state: { store: { state: "slow", when_store_fails: "open" } } })`,
			"warn | The store is slow | Requests wait for the store, and 15 decisions a second are made without it. These are allowed without limits (when_store_fails: open). |  | ",
		},
		"a store that is down, and instances that are not known": {
			`model({ pages: {} }, { pages: steps(180, [0, 0, 500]) }, { state: { store: { state: "down", when_store_fails: "unknown" } } })`,
			"bad | The store is down | Requests that need it are denied by this instance, which does not know how many instances share each limit (when_store_fails: share). / Start Redis, or take this instance out of the load balancer. With instances in the file, it would know its share. |  | ",
		},
		"a store that is down, and an instance that would start": {
			`model({ pages: {} }, { pages: steps(180, [0, 0, 500]) }, { state: { store: { state: "down", when_store_fails: "share" } } })`,
			"bad | The store is down | Requests that need it are decided by each instance, by its share of each limit (when_store_fails: share). / An instance that starts now denies all of them: its file has no instances. |  | ",
		},
		"calm": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) })`,
			"calm | Nothing unusual |  |  | ",
		},
		"a key whose denials began when the store failed is not proposed for a ban": {
			`model({ pages: { denied: 40, degraded: 42, denied_keys: [key("ip:a", 40, 59)] } }, { pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10, 210])] },
				{ state: { store: { state: "up", when_store_fails: "share" } } })`,
			"bad | 40 denials a second since TIME, a second after the store was away |  | ip:a | look",
		},
		"one that was denied before is": {
			`model({ pages: { denied: 40, degraded: 42, denied_keys: [key("ip:a", 40, 90)] } }, { pages: [...steps(162, [0, 0, 400]), ...steps(6, [200, 0, 10]), ...steps(12, [200, 0, 10, 210])] },
				{ state: { store: { state: "up", when_store_fails: "share" } } })`,
			"bad | 40 denials a second since TIME (1 minute) |  | ip:a | ban",
		},
		"nor while few decisions are made without the store": {
			`model({ pages: { allowed: 500, denied: 40, degraded: 42, denied_keys: [key("ip:a", 40, 59)] } }, { pages: [...steps(168, [0, 0, 400]), ...steps(12, [2000, 0, 200, 210])] },
				{ state: { store: { state: "up", when_store_fails: "share" } } })`,
			"bad | 40 denials a second since TIME, a second after the store was slow, or failed |  | ip:a | look",
		},
		"denials after an undo began with it": {
			`model({ pages: { denied: 40, denied_keys: [key("ip:bot", 40, 500)] } }, { pages: [...steps(100, [0, 0, 400]), ...steps(68, [0, 200, 10]), ...steps(12, [200, 0, 10])] },
				{ acts: [{ act: "ban", rule: "pages", key: "ip:bot", at: now - 400_000, undone: { at: now - 59_000 } }] })`,
			"bad | 40 denials a second since TIME, as the ban of ip:bot in rule pages was undone |  | ip:bot | ban",
		},
		"a slow store": {
			`model({ pages: { allowed: 100 } }, { pages: steps(180, [0, 0, 500]) }, { state: { store: { state: "slow" } } })`,
			"warn | The store is slow | Requests wait for the store. |  | ",
		},
	} {
		got := p.awaited(judgeScript + "return said(" + c.script + ");")
		if got = clockTimes.ReplaceAllString(got, "TIME"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// A time in which the store was slow, failed or was away is one event, and a single decision without it
// is none.
func TestConsoleOutages(t *testing.T) {
	t.Parallel()
	got := operate(t).console(withToken()).awaited(`
		const { Model } = await import("./model.js");
		const { events } = await import("./causes.js");
		const m = new Model();
		const degraded = { 20: 1, 60: 40, 61: 50, 64: 3, 150: 3 }, late = { 100: [9, 5], 101: [9, 4], 110: [1, 1] };
		const said = () => events(m).map((e) => [e.at, e.to, e.text, e.begins].join(" ")).join(", ");
		const allowed = { 20: 0, 150: 5000 };
		m.setHistory({ step_s: 5, steps: Array.from({ length: 180 }, (_, i) =>
			({ at: 1000 + 5 * i, rules: {}, total: [allowed[i] ?? 50, 0, 0, 0, degraded[i] ?? 0, 0], all: [0, 0, ...late[i] ?? []] })) });
		const { Spark } = await import("./spark.js");
		const first = new Spark(9).draw({ allowed: [0], denied: [5], shadow_denied: [0] }).down + " " + said();
		m.addState({ at: 1302000, instances: [{ name: "a-1", started_at: 1302000 }] });
		return first + ", " + said();`)
	store := "1320000 1325000 the store was slow, or failed false, " +
		"1500000 1505000 the store was slow, or failed true"
	if want := "5 1300000 1310000 the store was away true, " + store + ", 1302000 1310000 the store was away true, " +
		"1302000 1302000 a-1 started true, " + store; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// A key with several user agents may be an office: its raise stands first, with a reason.
func TestConsoleManyAgents(t *testing.T) {
	t.Parallel()
	p := operate(t).console(withToken())
	for _, c := range []struct {
		agents      int
		paths, want string
	}{
		{3, `{ "/": 4, "/cart": 3, "/help": 2 }`, "raise,ban; raise; raise,ban,reset; true"},
		{3, `{ "/login": 9 }`, "ban,raise; ; ban,raise,reset; false"},
		{1, `{ "/": 4, "/cart": 3, "/help": 2 }`, "ban,raise; ; ban,raise,reset; false"},
	} {
		got := p.awaited(judgeScript + `
			const m = model({ pages: { denied: 40, denied_keys: [{ ...key("ip:a", 40, 60), seen: seen(9, { agents: ` +
			strconv.Itoa(c.agents) + ` }, ` + c.paths + `) }] } }, { pages: steps(180, [0, 0, 0]) });
			const app = { model: m, rule: null, cannotAct: () => "" };
			const overview = await import("./overview.js");
			const deniedKeys = await import("./denied_keys.js");
			const { Panel } = await import("./key_panel.js");
			const { caution } = await import("./action_text.js");
			document.querySelector("#keys").replaceChildren();
			overview.start(app);
			overview.draw();
			deniedKeys.start(app);
			deniedKeys.draw();
			const [ask, element] = [fetch, document.createElement("div")];
			globalThis.fetch = async () => Response.json({ key: "ip:a", rules: [{ rule: "pages", mode: "enforce", limits: [] }] });
			await new Panel(app, element).open("ip:a", "pages", true);
			globalThis.fetch = ask;
			const words = (list) => [...list].map((b) => b.textContent.split(/[ …]/)[0].toLowerCase()).join();
			const warning = "one key can be many people";
			return [words(document.querySelectorAll("#culprit-ban, #culprit-raise")),
				words(document.querySelectorAll("#keys .key-acts .primary")), words(element.querySelectorAll(".buttons button")),
				[document.querySelector("#verdict-detail").textContent, element.querySelector(".key-seen").textContent,
					caution({ act: "ban", rule: "pages", key: "ip:a" }, m)].every((text) => text.includes(warning))].join("; ");`)
		if got != c.want {
			t.Errorf("agents %d, paths %s: got %s; want %s", c.agents, c.paths, got, c.want)
		}
	}
}

// After an undo, nothing is said to last. A tile that is 0 is hidden. A list is sorted by
// the rate it shows, but not while a person uses it.
func TestConsoleAfterAnUndo(t *testing.T) {
	t.Parallel()
	p := operate(t).console(withToken())
	p.click("#search-key") // where the pointer stays
	got := p.awaited(judgeScript + `
		document.activeElement.blur();
		const { Order } = await import("./rows.js");
		const sorted = (element, ms) => {
			const order = new Order(element);
			return [["a", "b"], ["b", "a"]].map((list, i) => order.sort(list, (x) => x, i * ms).join("")).join("-");
		};
		const orders = [sorted(document.createElement("div"), 1_000), sorted(document.querySelector("#search"), 60_000)];
		const at = Date.now();
		const m = model({ pages: { denied: 1, denied_keys: [{ ...key("all", 38, 60), shadow_denied: 9 }] } }, { pages: steps(180, [0, 0, 0]) },
			{ acts: [{ id: "1", at: at - 60_000, by: "Ann", act: "ban", rule: "pages", key: "ip:a", until: at + 600_000, undone: { at, by: "Ann" } }] });
		m.setHistory({ step_s: 5, steps: Array.from({ length: 180 }, (_, i) => ({ at: at / 1000 - (180 - i) * 5, rules: {}, total: [1, 0, 0, 0, 0, 0] })) });
		const app = { model: m, rule: null, cannotAct: () => "" };
		const overview = await import("./overview.js");
		const actionLog = await import("./action_log.js");
		overview.start(app);
		overview.drawHistory();
		const text = (selector) => document.querySelector(selector).textContent.replace(/\d\d:\d\d(:\d\d)?/g, "TIME");
		const mark = [...document.querySelectorAll("#bands i")].map((m) => m.title.replace(/\d\d:\d\d(:\d\d)?/g, "TIME")).join(", ");
		actionLog.start(app);
		actionLog.draw();
		const drawn = (rules) => {
			m.addState({ ...m.state, at: m.state.at + 1e6, rules: m.state.rules.map((r) => ({ ...r, ...rules })) });
			overview.draw();
			return document.querySelector("#n-error").checkVisibility();
		};
		const tiles = [drawn({ error: 9 }), drawn({ error: 0 })];
		return [mark, text("#actions-rows .act-text"), tiles, orders].join("; ");`)
	want := "TIME to TIME Banned ip:a in rule pages, TIME a started; Banned ip:a in rule pages.; true,false; ab-ba,ab-ab"
	if got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// Dialogs promise nothing that does not hold.
func TestConsoleDialogs(t *testing.T) {
	t.Parallel()
	p := operate(t).console(withToken())
	for name, c := range map[string]struct{ script, want string }{
		"a raise of a guesser": {`caution({ act: "raise", rule: "pages", key: "ip:a", limits: ["1500/m"] }, fleet())`,
			"This is 300 times the limit: raise it only for a client that you know."},
		"a small raise": {`caution({ act: "raise", rule: "pages", key: "ip:a", limits: ["20/m"] }, fleet())`, ""},
		"no limits yet": {`caution({ act: "raise", rule: "pages", key: "ip:a", limits: [] }, fleet())`, ""},
		"other limits elsewhere": {`caution({ act: "raise", rule: "pages", key: "ip:a", limits: ["9/m"] }, fleet({ instances:
			[{ name: "b", started_at: 0, differs: { removed: ["rule pages: 5/m"], added: ["rule pages: 1/m"] } }] }))`,
			"Rule pages is not the same on all instances."},
		"a switch of other limits": {`caution({ act: "mode", rule: "pages", mode: "shadow" }, fleet({ instances:
			[{ name: "b", started_at: 0, differs: { removed: ["rule pages: 5/m"], added: ["rule pages: 1/m"] } }] }))`,
			"Rule pages is not the same on all instances."},
		"a switch back": {`caution({ act: "mode", rule: "pages", mode: "file" }, fleet({ instances:
			[{ name: "b", started_at: 0, differs: { removed: ["rule pages: 5/m"], added: ["rule pages: 5/m, shadow"] } }] }))`,
			"Rule pages is not the same on all instances."},
		"a slow store": {`effect({ act: "mode", rule: "pages", mode: "shadow", for_s: 600 }, fleet({ store: { state: "slow" } }), now)`,
			"Rule pages denies nothing until TIME, so it limits no client. It only counts what it would deny. With the present traffic, it would deny 100% of its requests, 7.0 a second. " +
				"Requests still wait for the store. The store is slow: this may be late, or fail."},
	} {
		got := p.awaited(judgeScript + `
			const { caution, effect } = await import("./action_text.js");
			const fleet = (state) => {
				const m = model({ pages: { denied: 7 } }, { pages: steps(180, [0, 0, 500]) }, { state });
				m.config.rules = [{ name: "pages", limits: ["5/m burst 9"] }];
				return m;
			};
			return ` + c.script)
		if got = clockTimes.ReplaceAllString(got, "TIME"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// After a restart the page has the name of the new process, the key of all requests is never a
// client, and has no button to ban it, a limit that is nearly full has no time until it is, and the
// store has one state. An error and its time are of one instance, the denials of a rule that is off
// here are of others, and a dialog promises nothing while the store is down.
func TestConsoleNamesAndTimes(t *testing.T) {
	t.Parallel()
	got := operate(t).console(withToken()).awaited(`
		const { Model } = await import("./model.js");
		const status = await import("./status.js");
		const model = new Model();
		model.access = { instance: "old-1" };
		const rule = { name: "api", kind: "rule", mode: "off", file_mode: "off", allowed: 0, denied: 5, shadow_denied: 0,
			error: 0, degraded: 0, banned: 0, denied_keys: [{ key: "ip:1", denied: 9, shadow_denied: 0, per_s: 5, first: 1, last: 1 }] };
		model.addState({ at: 1, store: { kind: "redis", state: "slow" }, rules: [rule], instances: [
			{ name: "new-2", store: "up", self: true, started_at: 0, decisions_per_s: 0, config: { hash: "", loaded_at: 0, error: { text: "x", at: 0 } } },
			{ name: "b", store: "down", started_at: 0, decisions_per_s: 0, config: { hash: "", loaded_at: 0, error: { text: "y", at: 9e9 } } }] });
		status.start({ model });
		status.draw();
		const name = document.querySelector("#instance").textContent;
		const stores = [document.querySelector("#fact-store").textContent.slice(0, 10),
			...[...document.querySelectorAll("#instances td:nth-child(2)")].slice(0, 2).map((e) => e.textContent)];
		const failed = document.querySelector("#config-error-since").textContent.replace(/^.* on |; .*active/g, "");

		const deniedKeys = await import("./denied_keys.js");
		deniedKeys.start({ model, rule: null, cannotAct: () => "" });
		deniedKeys.draw();
		const notShadow = document.querySelector("#keys .key-would").hidden;

		const { effect } = await import("./action_text.js");
		const down = new Model();
		down.addState({ at: 1, store: { state: "down" }, rules: [], instances: [] });
		const reset = effect({ act: "reset", rule: "api", key: "ip:1" }, down);

		const { isShared } = await import("./key_breadth.js");
		const all = isShared("all");

		const { Panel } = await import("./key_panel.js");
		const [ask, element] = [fetch, document.createElement("div")];
		globalThis.fetch = async () => Response.json({ key: "header:", rules: [{ rule: "api", mode: "enforce",
			limits: [{ limit: "6/h", capacity: 6, remaining: 5, reset_after_s: 0.3, allowed: true }] }] });
		await new Panel({ model, cannotAct: () => "" }, element).open("header:", null);
		globalThis.fetch = ask;
		return [stores.join("/"), name, failed, [all, element.querySelector(".buttons button").hidden, notShadow].join("/"), reset, element.querySelector(".limit-text").textContent].join(", ");`)
	if want := "Redis slow/slow/down, new-2, new-2. A restart with this file fails., true/true/true, " +
		"The store is down. If you have sent this already, it may have been done: when the store answers, look at the list of actions, and send this again if it is not there., 5 of 6 remain"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// Without a connection, no time goes on beyond the last data.
func TestConsoleStopsTheClock(t *testing.T) {
	t.Parallel()
	got := operate(t).console(withToken()).awaited(judgeScript + `
		const status = await import("./status.js");
		const { ago } = await import("./times.js");
		const m = model({ pages: { denied: 40, denied_keys: [key("ip:a", 40, 59)] } }, { pages: [...steps(168, [0, 0, 400]), ...steps(12, [200, 0, 10])] });
		status.start({ model: m });
		const shown = (connection) => {
			m.connection = connection;
			status.drawConnection();
			return ago(connection.at - 7000);
		};
		const old = shown({ live: false, error: "x", at: now }) + " " + judge(m).title;
		return old + " " + shown({ live: true, error: "", at: Date.now() });`)
	if got = clockTimes.ReplaceAllString(got, "TIME"); got != "7s ago 40 denials a second since TIME (59 seconds) 7s ago" {
		t.Errorf("got %s", got)
	}
}

// Files that could not be loaded and lost actions are marks. If an action has no answer, nobody knows.
func TestConsoleSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	got := operate(t).console(withToken()).awaited(judgeScript + `
		const m = model({ pages: { denied: 40, degraded: 42, denied_keys: [key("ip:bot", 30, 90), key("ip:a", 10, 59)] } },
			{ pages: [...steps(162, [0, 0, 400]), ...steps(6, [200, 0, 10]), ...steps(12, [200, 0, 10, 210])] },
			{ state: { store: { state: "up", when_store_fails: "share" }, instances: [{ name: "a", started_at: 0, config: { error: { text: "x", at: now - 9000 } } }] } });
		const app = { model: m, rule: null, cannotAct: () => "" };
		const overview = await import("./overview.js");
		overview.start(app);
		m.lost = { at: now - 5000, count: { ban: 1, limits: 0, mode: 0 } };
		overview.drawHistory();
		const marks = [...document.querySelectorAll("#bands i")].map((m) => m.title).join("; ");

		const deniedKeys = await import("./denied_keys.js");
		document.querySelector("#keys").replaceChildren();
		deniedKeys.start(app);
		deniedKeys.draw();
		const rows = [...document.querySelectorAll("#keys .key-row")].map((row) => row.querySelector(".rule-note").textContent
			+ [...row.querySelectorAll(".key-acts button")].map((b) => b.hidden).join());

		const { build } = await import("./forms.js");
		const problem = async (error) => {
			const { element } = build(app, "ban", { rule: "pages", key: "ip:a" }, { by: "", submit: () => { throw error; } });
			element.dispatchEvent(new Event("submit", { cancelable: true }));
			await null;
			return element.querySelector(".problem").textContent;
		};
		const { Refusal } = await import("./api.js");

		const few = [0, 0, 400, 1], many = [0, 0, 10, 210]; // a single decision without the store is no beginning
		const { timeOfDay } = await import("./times.js");
		const slow = judge(model({ pages: { degraded: 42 } }, { pages: [...steps(150, [0, 0, 400]), ...steps(18, few), ...steps(12, many)] },
			{ state: { store: { state: "slow" } } }), now).title.replace(timeOfDay(now - 60_000), "THEN");
		const { act } = await import("./api.js");
		const posted = async (response) => {
			window.fetch = async () => response;
			return act({}).then(() => "done", (error) => error.message);
		};
		return [slow, marks, ...rows, await problem(new Refusal("no", 409)), await posted(new Response("{")), await posted(new Response("", { status: 504 })),
			await posted(new Response(` + "`{\"detail\":\"gone\"}`" + `, { status: 503 })), await posted(new Response("", { status: 403 }))].join("; ");`)
	want := "The store is slow since THEN; TIME to TIME the store was away; TIME the files could not be loaded; TIME 1 ban was lost; false,false; " +
		"false,false; no; " +
		"the answer was cut off: it may have been done; the server answered 504: it may have been done; gone; the server answered 403"
	if got = clockTimes.ReplaceAllString(got, "TIME"); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

// awaited returns the result of the body of an async function.
func (p *page) awaited(body string) string {
	p.t.Helper()
	got, err := chromedp.Run(p.tab, chromedp.Evaluate[string](
		"(async () => {"+body+"})()", chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

var clockTimes = regexp.MustCompile(`(\d+ \w+, )?\d\d:\d\d(:\d\d)?`)
