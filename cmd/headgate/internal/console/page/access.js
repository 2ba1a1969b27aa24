// Who may look and who may act: the page before there is a token, and the dialog to enter one.

import { getAccess, token } from "./api.js";
import { byId, h, setText, show } from "./dom.js";
import { sentence } from "./key_text.js";

let app;

export function start(theApp) {
  app = theApp;
  byId("viewing-button").addEventListener("click", () => open());
  byId("access-button").addEventListener("click", () => open());
  byId("access").addEventListener("close", () => byId("access").replaceChildren());
}

// check asks what this person may do, and starts the page or says what is missing.
export async function check() {
  try {
    use(await getAccess());
  } catch (error) {
    if (error.status === 401 && token.get()) {
      token.clear(); // it was removed from the file; one may still be allowed to look
      await check();
    } else if (error.status === 404 || error.status === 403) {
      gate("The console is not available", sentence(error.message));
    } else {
      gate("No connection", `${sentence(error.message)} This page retries automatically.`);
      setTimeout(check, 2_000);
    }
  }
}

function use(access) {
  app.model.access = access;
  if (!access.may_read) return gate("Enter a token", sentence(access.why), true);
  show(byId("gate"), false);
  show(byId("main"), true);
  draw();
  app.begin();
}

// gate hides the page and says why.
function gate(title, text, needsToken = false) {
  app.end();
  show(byId("main"), false);
  show(byId("viewing"), false);
  show(byId("access-button"), false);
  setText(byId("gate-title"), title);
  setText(byId("gate-text"), text);
  byId("gate-form").replaceChildren(...needsToken ? [form([], use)] : []);
  show(byId("gate"), true);
  document.documentElement.dataset.ready = "true";
  byId("gate").querySelector("input[type=password]")?.focus();
}

// enter tries a token, and returns what it allows.
async function enter(bearer) {
  if (!/^[\x21-\x7e]+$/.test(bearer)) {
    throw new Error(bearer ? "A token has only ASCII characters and no spaces."
      : "Enter one of api.tokens in the rules file.");
  }
  const access = await getAccess(bearer);
  if (!access.may_act) throw new Error(sentence(access.why));
  token.set(bearer);
  return access;
}

function draw() {
  const { access } = app.model;
  const none = access.why.includes("no tokens");
  show(byId("viewing"), !access.may_act);
  setText(byId("viewing-text"), none
    ? "Read-only. To allow changes, add to the rules file: api: {tokens: [\"${HEADGATE_TOKEN}\"]}"
    : "Read-only. A token is needed to ban, raise, reset or switch.");
  show(byId("viewing-button"), !none);
  show(byId("access-button"), access.may_act);
  setText(byId("access-button"), "Signed in");
}

// explain says why a person without a token cannot act, and asks for one. It reports whether that
// is the matter. With the token, refused is clicked again.
export function explain(why, refused) {
  if (app.model.access.may_act || !app.isOn) return false;
  if (app.model.access.why.includes("no tokens")) return false;
  open(refused, `${sentence(why)} `);
  return true;
}

function open(refused = null, why = "") {
  const dialog = byId("access");
  const button = (text, click) => h("button", { type: "button", click }, text);
  const title = (text) => h("h2", { id: "access-title" }, text);
  if (app.model.access.may_act) {
    dialog.replaceChildren(h("form", {}, title("Signed in"),
      h("p", {}, "This tab keeps the token until it is closed."), h("p", { class: "buttons" },
        button("Forget the token", () => { token.clear(); location.reload(); }),
        button("Close", () => dialog.close()))));
  } else {
    const text = h("p", {}, why, "One of ", h("code", {}, "api.tokens"),
      " in the rules file. This tab keeps it until it is closed.");
    dialog.replaceChildren(form([title("Enter a token"), text], (access) => {
      dialog.close();
      goOn(access, refused);
    }, button("Cancel", () => dialog.close())));
  }
  dialog.showModal();
}

// goOn uses the token, and clicks the button again that needed it.
async function goOn(access, refused) {
  use(access);
  if (!document.activeElement.checkVisibility() || document.activeElement === document.body) {
    byId("access-button").focus();
  }
  await app.refresh();
  refused?.focus();
  refused?.click();
}

// form asks for a token, and calls then with the access that the token gives.
function form(head, then, ...buttons) {
  const field = h("input", {
    id: "access-token", type: "password", autocomplete: "current-password",
  });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const element = h("form", { novalidate: true }, ...head,
    h("input", { autocomplete: "username", value: "Headgate", hidden: true }),
    h("div", { class: "field grow" }, h("label", { for: "access-token" }, "Token"), field),
    problem,
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Continue"), ...buttons));
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      then(await enter(field.value.trim()));
    } catch (error) {
      setText(problem, sentence(error.message));
      problem.hidden = false;
      field.select();
    }
  });
  return element;
}
