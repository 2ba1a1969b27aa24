// The console: it keeps a connection to the server and draws what comes.

import * as access from "./access.js";
import { ActionDialog } from "./action_dialog.js";
import * as actionLog from "./action_log.js";
import * as activeRules from "./active_rules.js";
import * as address from "./address.js";
import { getActs, getConfig } from "./api.js";
import * as deniedKeys from "./denied_keys.js";
import { byId } from "./dom.js";
import { Events } from "./event_stream.js";
import { Model } from "./model.js";
import * as overview from "./overview.js";
import * as status from "./status.js";

const slow = 5_000; // how often the configuration and the acts are read
const late = 4_000; // without a state, what is shown is old
const unseen = 60_000; // after which a page that nobody sees lets the server be

const app = {
  model: new Model(),
  rule: null, // the chosen rule; null: all
  isOn: false, // whether it keeps a connection, or tries to

  // cannotAct says why a control cannot be used, or "".
  cannotAct(kind = "rule") {
    if (!this.model.access.may_act) {
      return this.model.access.why.includes("no tokens")
        ? "Actions are off: the rules file has no api.tokens" : "This action needs a token";
    }
    if (kind === "domain") return "Rules in Envoy's format have no overrides: change the file";
    if (!this.model.connection.live) return "There is no connection";
    return this.model.state?.store.state === "down" ? "The store is down" : "";
  },

  choose(rule) {
    this.rule = rule;
    address.write({ rule, key: null });
    deniedKeys.resetOrder();
    overview.drawHistory();
    drawState();
  },

  // look shows a key under rule, or under all if that is null.
  look(key, rule) {
    address.write({ rule: this.rule, key: key || null });
    deniedKeys.look(key, rule);
  },

  // restore shows what the address says, once.
  restore() {
    const { rule, key } = address.read();
    this.restore = () => {};
    overview.drawHistory(); // the bands need a state
    if (rule !== null) this.choose(rule);
    if (key !== null) this.look(key, rule);
  },

  showChange: () => activeRules.showChange(),

  async refresh() {
    const [config, list] = await Promise.all([
      getConfig().catch(() => null), getActs().catch(() => null),
    ]);
    if (config) this.model.config = config;
    if (list) [this.model.acts, this.model.lost] = [list.acts, list.lost];
    drawSlow();
  },

  begin() {
    this.end();
    this.isOn = true;
    events.start();
    this.refresh();
    timer = setInterval(() => document.hidden || this.refresh(), slow);
    attend();
  },

  end() {
    this.isOn = false;
    events.stop();
    clearInterval(timer);
    clearTimeout(watch);
  },
};

let timer = 0;
let watch = 0;

const events = new Events({
  history(data) {
    app.model.setHistory(data);
    overview.drawHistory();
  },
  step(data) {
    app.model.addStep(data);
    overview.drawHistory();
  },
  state(data) {
    if (!app.model.addState(data)) return;
    app.model.connection = { live: true, error: "", at: data.at };
    clearTimeout(watch);
    watch = setTimeout(() => lost(new Error("the server has stopped sending events")), late);
    status.drawConnection();
    drawState();
    app.restore();
  },
  lost,
  refused: access.check,
});

function lost(error) {
  app.model.connection = { ...app.model.connection, live: false, error: error.message };
  status.drawConnection();
  drawState();
}

function drawState() {
  status.draw();
  overview.draw();
  deniedKeys.draw();
  app.acting.draw();
  document.documentElement.dataset.ready = String(Boolean(app.model.state && app.model.config));
}

function drawSlow() {
  overview.drawHistory();
  actionLog.draw();
  activeRules.draw();
  drawState();
}

let hidden = 0;

// rest lets the server be. What is shown is old from now on, and so is a sign in the title.
function rest() {
  if (!app.isOn) return;
  app.end();
  document.body.classList.add("stale");
  document.title = "(no connection) Headgate console";
}

function attend() {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(rest, unseen);
  else if (!app.isOn && !byId("main").hidden) app.begin();
}

document.addEventListener("visibilitychange", attend);

for (const part of [status, overview, deniedKeys, actionLog, activeRules, access]) part.start(app);
app.acting = new ActionDialog(app);
addEventListener("refused", ({ detail, target }) => {
  if (!access.explain(detail, target)) app.acting.say(detail);
});
byId("retry").addEventListener("click", () => events.start());
// The stream of events never ends: begun earlier, it would be a part of what the browser loads.
if (document.readyState === "complete") access.check();
else addEventListener("load", () => setTimeout(access.check));
