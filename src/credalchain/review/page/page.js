// The review page. Everything that comes from data is put in as text, never as HTML.

const TEN = 10;
const WORDS = { 1: "yes", 0: "no" };

const at = (id) => document.getElementById(id);
const PAUSE = 600; // milliseconds without answers after a key that came too early
const state = { session: null, view: null, current: null, places: [], why: null, busy: false, quietUntil: 0, who: "", order: "" };

// -- talking to the server ---------------------------------------------------------------------

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await fetch(path, options);
      const found = await response.json().catch(() => ({}));
      if (!response.ok) throw Object.assign(new Error(words(found.detail)), { told: true, later: response.status === 503, changed: response.status === 409 });
      return found;
    } catch (error) {
      if (error.changed) { sessionStorage.setItem("credalchain told", error.message); location.reload(); }
      if (error.later) trouble(error);
      else if (error.told || attempt >= 4) throw error;
      await new Promise((done) => setTimeout(done, 300 * 2 ** Math.min(attempt, 4))); // the same request again
    }
  }
}

const words = (detail) => typeof detail === "string" ? detail : "The request was not understood.";

function tell(text) { at("live").textContent = text; }

function trouble(error) {
  const box = at("trouble");
  box.hidden = error === null;
  if (error !== null) {
    const lost = "The server cannot be reached. Confirmed answers are stored; restart it.";
    box.textContent = error.told ? error.message : lost;
  }
}

async function once(work) {
  if (state.busy) return;
  state.busy = true;
  at("answers").setAttribute("aria-busy", "true");
  try {
    await work();
    trouble(null);
  } catch (error) {
    trouble(error);
  } finally {
    state.busy = false;
    at("answers").removeAttribute("aria-busy");
  }
}

// A key that comes before the page has shown what the last one did may be meant for another label.
function tooEarly() {
  const now = performance.now();
  if (!state.busy && now >= state.quietUntil) return false;
  state.quietUntil = now + PAUSE;
  at("said").textContent = "That key came too early and was ignored.";
  tell("That key came too early and was ignored.");
  return true;
}

// -- making elements ---------------------------------------------------------------------------

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const percent = (x) => `${(100 * x).toFixed(x > 0.995 || x < 0.005 ? 1 : 0)} %`;

function interval(label) {
  if (label.lower === null) return make("span", { className: "mark" }, "asked without a suggestion");
  const bounds = `between ${percent(label.lower)} and ${percent(label.upper)}`;
  const width = Math.max(3, 200 * (label.upper - label.lower));
  const picture = svg("svg", { class: "interval", viewBox: "0 0 200 16", preserveAspectRatio: "none", role: "img", "aria-label": `probability of yes ${bounds}` });
  picture.append(
    svg("line", { class: "line", x1: 0, x2: 200, y1: 8, y2: 8 }),
    svg("line", { class: "half", x1: 100, x2: 100, y1: 0, y2: 16 }),
    svg("rect", { class: `bar ${WORDS[label.answer] ?? ""}`, x: Math.min(200 * label.lower, 200 - width), y: 4, width, height: 8, rx: 2 }),
  );
  if (label.source === "person") picture.append(svg("rect", { class: "bar given", x: label.answer ? 196 : 0, y: 1, width: 4, height: 14 }));
  const title = svg("title", {});
  title.textContent = bounds;
  picture.prepend(title);
  return picture;
}

// -- the row -----------------------------------------------------------------------------------

function showProgress(progress) {
  const numbers = [
    ["rows left", `${progress.rows_left} of ${progress.rows}`],
    ["labels left", progress.labels_left],
    ["answers", progress.answers],
    ["answers per hour", progress.answers_an_hour],
    ["settled before", percent(progress.completeness_before)],
    ["settled now", percent(progress.completeness)],
  ].filter(([, value]) => value !== null); // the pace is known after some minutes
  at("numbers").replaceChildren(...numbers.map(([name, value]) =>
    make("div", { className: "number" }, make("dt", {}, name), make("dd", {}, String(value)))));
  at("before").style.width = `${100 * progress.completeness_before}%`;
  at("now").style.width = `${100 * progress.completeness}%`;
}

function showContent(view) {
  at("row-title").textContent = `Row ${view.row}`;
  at("content").replaceChildren(...view.content.flatMap((cell, column) => {
    let shown = String(cell.value ?? "missing");
    if (cell.kind === "image" || cell.kind === "address") {
      const source = cell.kind === "image" ? `/images/${view.row}/${column}` : cell.value;
      shown = make("img", { src: source, alt: `${cell.name}: ${cell.value}`, referrerPolicy: "no-referrer" });
    }
    return [make("dt", {}, cell.name), make("dd", {}, shown)];
  }));
}

const isOpen = (label) => label.source === "open" || label.source === "blind";

function labelItem(j) {
  const label = state.view.labels[j];
  const place = state.places.indexOf(j);
  const key = place < 0 || place >= TEN ? null : String((place + 1) % TEN);
  const explained = state.why?.label === j;
  const word = isOpen(label) ? "open" : WORDS[label.answer];
  const by = { person: "by a person", model: "by the model", open: "", blind: "" };
  const others = Object.entries(label.people).map(([who, value]) => `${who}: ${WORDS[value]}`).join(", ");
  const button = (text, name, work, more = {}) =>
    make("button", { ...more, type: "button", className: name, tabIndex: j === state.current ? 0 : -1, "aria-label": `${text}: ${label.name}`, onclick: () => { choose(j); work(); } }, text);
  const buttons = make("span", { className: "buttons" },
    button("Yes", "yes", () => give(1)), button("No", "no", () => give(0)),
    isOpen(label) ? button("Skip", "skip", () => give(null)) : null,
    label.source === "blind" ? null : button("Why", "why", why, { "aria-expanded": String(explained) }));
  const name = make("button", { type: "button", className: "name", tabIndex: j === state.current ? 0 : -1, onclick: () => choose(j, true) },
    key === null ? null : make("kbd", {}, key), key === null ? null : " ", label.name);
  if (j === state.current) name.setAttribute("aria-current", "true");
  name.setAttribute("aria-describedby", `word-${j} mark-${j} bounds-${j}`);
  const marks = [by[label.source], label.changed ? "just changed" : "", others && `people disagree: ${others}`].filter(Boolean).join(" · ");
  return make("li", { className: `label${j === state.current ? " current" : ""}${label.changed ? " changed" : ""}${isOpen(label) ? "" : " done"}` },
    make("span", {}, name, " ", make("span", { id: `word-${j}`, className: `word ${word}` }, word), " ", make("span", { id: `mark-${j}`, className: "mark" }, marks)),
    make("span", { id: `bounds-${j}` }, interval(label)), buttons, explained ? state.why.box : null);
}

function shownLabels() {
  const found = at("search").value.trim().toLowerCase();
  const settled = state.view.labels.map((_, j) => j).filter((j) => !state.places.includes(j));
  const fits = (j) => state.view.labels[j].name.toLowerCase().includes(found);
  if (found) return { first: [...state.places, ...settled].filter(fits), settled: [] };
  return { first: state.places, settled };
}

function showLabels() {
  const { first, settled } = shownLabels();
  if (state.current !== null && !first.includes(state.current) && !settled.includes(state.current)) state.current = first[0] ?? null;
  at("labels").replaceChildren(...first.map(labelItem));
  at("settled-box").hidden = settled.length === 0;
  at("settled-title").textContent = `Answered by the model (${settled.length})`;
  at("settled").replaceChildren(...settled.slice(0, 200).map(labelItem));
  if (settled.includes(state.current)) at("settled-box").open = true;
  at("search-box").hidden = state.view.labels.length <= TEN;
  const left = state.view.asked.length;
  at("said").textContent = left ? `${left} to answer` : "Nothing is left to answer in this row.";
}

// The labels of an open row keep their places: what comes to be asked is put at the end.
function place(view, anew) {
  const touched = (label) => label.source === "person" || label.changed;
  const listed = new Set([...(anew ? [] : state.places), ...view.asked]);
  view.labels.forEach((label, j) => { if (touched(label)) listed.add(j); });
  state.places = [...listed];
}

function nextOpen(label) {
  const start = state.places.indexOf(label) + 1;
  return [...state.places.slice(start), ...state.places].find((j) => isOpen(state.view.labels[j])) ?? null;
}

function show(view, { label = null, anew = view.row !== state.view?.row } = {}) {
  if (view.row === null) {
    state.view = null;
    showProgress(view.progress);
    at("row-title").textContent = "Nothing is left to answer.";
    for (const id of ["content", "labels", "settled"]) at(id).replaceChildren();
    at("said").textContent = "All rows are settled, or being answered by somebody else.";
    at("settled-box").hidden = true;
    at("row-title").focus();
    tell("Nothing is left to answer.");
    return;
  }
  const isFirst = state.view === null;
  state.view = view;
  state.why = null;
  place(view, anew);
  state.current = view.label ?? nextOpen(label); // what is settled is changed only by who chooses it
  showProgress(view.progress);
  showContent(view);
  showLabels();
  focusCurrent(isFirst ? null : anew && !columns.matches ? document.querySelector("#row .head") : undefined);
  refreshLists().catch(trouble);
}

// Rows are read from their beginning, which in one column stands above the labels.
const columns = matchMedia("(min-width: 50rem)");

function focusCurrent(seen) {
  const name = document.querySelector("li.current .name");
  (name ?? at("next")).focus({ preventScroll: true });
  if (seen === undefined) seen = name?.closest("li") ?? at("next");
  seen?.scrollIntoView({ block: "nearest" });
}

function choose(j, quietly = false) {
  state.current = j;
  showLabels();
  focusCurrent();
  if (!quietly) return;
  tell(state.view.labels[j].name);
}

function nothingChosen() {
  if (state.view !== null && state.current !== null) return false;
  tell("Nothing is left to answer in this row. Choose a label to change it, or go to the next row.");
  return true;
}

// -- what people do ----------------------------------------------------------------------------

const newName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

function give(value) {
  if (tooEarly() || nothingChosen()) return;
  const [{ row, key }, label] = [state.view, state.current];
  once(async () => {
    const view = await ask(`/api/rows/${row}/answers`, { request: newName(), who: state.who, label, value, key });
    at("search").value = "";
    const settled = view.labels.filter((one, j) => one.changed && j !== label);
    const changes = settled.map((one) => `${one.name} ${isOpen(one) ? "open again" : WORDS[one.answer]}`).join(", ");
    const did = value === null ? "skipped" : WORDS[value];
    const name = view.labels[label].name;
    show(view, { label });
    tell(`${name} ${did}. ${changes ? `Changed: ${changes}. ` : ""}${view.asked.length} left in this row.`);
  });
}

function next({ stay = false } = {}) {
  return once(async () => {
    const after = state.view === null || stay ? null : state.view.row;
    const view = await ask("/api/next", { who: state.who, order: state.order, after });
    at("search").value = "";
    show(view, { anew: true });
    if (view.row !== null) tell(`Row ${view.row}, ${view.asked.length} to answer.`);
  });
}

function undo() {
  once(async () => {
    const view = await ask("/api/undo", { request: newName(), who: state.who });
    show(view);
    tell(`Undone in row ${view.row}.`);
  });
}

function open(row) {
  once(async () => show(await ask(`/api/rows/${row}/open`, { who: state.who })));
}

function why() {
  if (nothingChosen()) return;
  const [row, label] = [state.view.row, state.current];
  if (state.why?.label === label) { state.why = null; choose(label); return; }
  once(async () => {
    const found = await ask(`/api/rows/${row}/why/${label}`);
    const parts = [];
    if (found.reasons.length) parts.push(table(["adds to the log-odds", "because"], found.reasons.map((one) => [`${one.lower.toFixed(2)} to ${one.upper.toFixed(2)}`, one.name])));
    if (found.similar.length) parts.push(table(["training row", "weight", "its labels", "in common"], found.similar.map((one) => [one.row, one.weight.toFixed(3), one.labels, one.in_common.join("; ")])));
    for (const one of found.settles.filter((each) => each.labels.length)) {
      parts.push(make("p", {}, `If ${WORDS[one.answer]}: ${one.labels.map(([name, y]) => `${name} is ${WORDS[y]}`).join(", ")}.`));
    }
    if (!parts.length) parts.push(make("p", {}, "This model gives bounds, but no reasons."));
    const title = `Why ${state.view.labels[label].name}?`;
    const box = make("section", { id: "why", "aria-label": title }, make("h3", {}, `${title} (${found.setting})`), ...parts);
    state.why = { label, box };
    choose(label);
    tell(box.innerText.slice(0, 400));
  });
}

function table(head, rows) {
  return make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, String(cell)))))));
}

async function refreshLists() {
  if (at("queue-box").open) {
    const rows = await ask(`/api/queue?who=${encodeURIComponent(state.who)}&order=${encodeURIComponent(state.order)}`);
    at("queue").replaceChildren(...rows.map((one) => make("li", {},
      make("button", { type: "button", className: "name", onclick: () => open(one.row) }, `Row ${one.row}`),
      make("span", { className: "mark" }, ` ${few(one.open)}`))));
  }
  if (at("disagreements-box").open) {
    const { rows, blind } = await ask("/api/disagreements");
    at("blind").textContent = blind.asked === 0 ? "" :
      `Asked without a suggestion: ${blind.asked}, answered differently from the model: ${blind.disagree} (${percent(blind.low)} to ${percent(blind.high)} of such labels). ${blind.check ?? ""}`;
    at("disagreements").replaceChildren(...rows.map((one) => make("li", {},
      make("button", { type: "button", className: "name", onclick: () => open(one.row) }, `Row ${one.row}, ${one.label}`),
      make("span", { className: "mark" }, ` ${Object.entries(one.people).map(([who, y]) => `${who}: ${WORDS[y]}`).join(", ")}${one.model === null ? "" : `; the model: ${WORDS[one.model]}`}`))));
    if (!rows.length) at("disagreements").replaceChildren(make("li", { className: "mark" }, "None so far."));
  }
}

const few = (names) => names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");

// -- keys --------------------------------------------------------------------------------------

function move(step) {
  const { first, settled } = shownLabels();
  const all = at("settled-box").open ? [...first, ...settled] : first;
  if (!all.length) return;
  const place = state.current === null ? (step > 0 ? -1 : 0) : all.indexOf(state.current);
  choose(all[(place + step + all.length) % all.length], true);
}

function jump(digit) {
  const label = state.places[(Number(digit) + TEN - 1) % TEN];
  if (label === undefined || state.view === null) return;
  at("search").value = "";
  choose(label, true);
}

const KEYS = {
  y: () => give(1), n: () => give(0), s: () => give(null), u: undo, w: why,
  ArrowDown: () => move(1), ArrowUp: () => move(-1), j: () => move(1), k: () => move(-1),
  "/": () => { if (!at("search-box").hidden) at("search").focus(); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.repeat && !event.key.startsWith("Arrow")) return; // a key that is held down is one key
  const target = event.target;
  if (target === at("search")) {
    if (event.key === "Enter" || event.key === "Escape") {
      event.preventDefault();
      if (event.key === "Escape") at("search").value = "";
      showLabels();
      focusCurrent();
    }
    return;
  }
  if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
  const onButton = target.tagName === "BUTTON" && !target.classList.contains("name");
  const inList = target.closest("#queue, #disagreements, summary") !== null;
  if (event.key === "Enter" && !onButton && !inList) { event.preventDefault(); if (!tooEarly()) next(); return; }
  if (/^[0-9]$/.test(event.key)) { event.preventDefault(); jump(event.key); return; }
  const work = event.key.length > 1 || at("letters").checked ? KEYS[event.key] : undefined;
  if (work && !(inList && event.key.startsWith("Arrow"))) { event.preventDefault(); work(); }
});

// -- the beginning -------------------------------------------------------------------------------

function remember() {
  if (!at("who").value.trim()) at("who").value = `reviewer ${newName().slice(0, 4)}`;
  state.who = at("who").value.trim();
  state.order = at("order").value;
  localStorage.setItem("credalchain who", state.who);
  localStorage.setItem("credalchain order", state.order);
}

async function begin() {
  state.session = await ask("/api/session");
  const { title, orders, model, progress, orphans } = state.session;
  document.title = `${title} · credalchain`;
  at("title").textContent = `Review of ${title}`;
  at("model").textContent = `${model.file}, ${model.digest.slice(0, 12)}${orphans ? ` · answers to rows or labels that are not in this data: ${orphans}` : ""}`;
  at("order").replaceChildren(...orders.map((name) => make("option", { value: name }, name)));
  at("who").value = localStorage.getItem("credalchain who") ?? `reviewer ${newName().slice(0, 4)}`;
  const order = localStorage.getItem("credalchain order");
  if (orders.includes(order)) at("order").value = order;
  remember();
  showProgress(progress);
  at("next").onclick = () => next();
  at("undo").onclick = undo;
  at("settings").onsubmit = (event) => { event.preventDefault(); at("who").blur(); };
  at("who").onchange = () => { remember(); state.view = null; next(); };
  at("order").onchange = () => { remember(); next({ stay: true }); };
  at("search").oninput = () => { if (state.view) showLabels(); };
  for (const id of ["queue-box", "disagreements-box"]) at(id).ontoggle = () => refreshLists().catch(trouble);
  await next();
  const told = sessionStorage.getItem("credalchain told"); // before the page was loaded again
  if (told !== null) trouble({ told: true, message: told });
  sessionStorage.removeItem("credalchain told");
}

begin().catch(trouble);
