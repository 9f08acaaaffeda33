// Shared by all explorers: controls, a stage, numbers, a note, a problem. A drawing defines
// draw(stage, shown, send): it fills the stage from `shown`, and calls send(name, value, which) with
// what a reader does; `which` tells apart things of one name. send.idle(): all was answered;
// send.say(words): report a problem. Whatever can be focused has a data-key of its own, to keep the
// focus when the stage is drawn again. `poll` in `shown`: send a "poll" after so many ms.

const PATIENCE = 10000; // ms without an answer, after which the kernel is taken for gone
const LOST = 6 * PATIENCE; // ms after which a poll without an answer is sent again
const SILENT = "The kernel does not answer. It may be at work in another cell; if it is gone, "
  + "choose Kernel > Restart, and run this cell again.";
const GONE = "This explorer is not alive any more: its kernel was restarted or shut down. Run its "
  + "cell again; after a restart, the cells above it first.";
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, children = [], space = null) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) (node.heard ??= {})[name] = node[name] = value;
    else if (value !== null && value !== false && value !== undefined)
      node.setAttribute(name, value === true ? "" : value);
  }
  // JupyterLab would take the arrows from a slider, and delete the cell at "d d".
  if ("data-key" in attributes) node.setAttribute("data-lm-suppress-shortcuts", "true");
  node.append(...[children].flat().filter((one) => one !== null)); // texts stay texts
  return node;
}

const svg = (tag, attributes, children) => make(tag, attributes, children, SVG);

const STAR = Array.from({ length: 10 }, (_, i) => {
  const turn = (Math.PI * i) / 5 - Math.PI / 2, far = i % 2 ? 4.5 : 11;
  return `${(far * Math.cos(turn)).toFixed(1)},${(far * Math.sin(turn)).toFixed(1)}`;
}).join(" ");

// Make a node like a fresh one and change nothing else, so that a browser lays out little anew, and
// focus and pointer stay. Handlers must name nodes by their event: the fresh ones are thrown away.
function renew(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id)
    return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return undefined;
  }
  const leaf = !fresh.firstElementChild && !fresh.heard && !old.heard;
  if (leaf && old.isEqualNode(fresh)) return undefined;
  for (const name of old.getAttributeNames())
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of Object.keys(old.heard ?? {})) old[name] = null;
  Object.assign(old, fresh.heard, { heard: fresh.heard });
  return renewChildren(old, [...fresh.childNodes]);
}

function renewChildren(parent, fresh) {
  const old = [...parent.childNodes];
  fresh.forEach((one, n) => (n < old.length ? renew(old[n], one) : parent.append(one)));
  for (const one of old.slice(fresh.length)) one.remove();
}

// Make the children of a node like those that are told: a node, or [tag, attributes, children or
// words]. Nodes that are there stay: to make all of a drawing anew takes a third of a frame.
function fill(parent, told) {
  let node = parent.firstChild;
  for (const one of told) {
    const plain = Array.isArray(one), [tag, attributes, inner = ""] = plain ? one : [];
    if (plain ? node?.told?.[0] !== tag : node !== one) {
      const fresh = plain
        ? document.createElementNS(tag === "svg" ? SVG : parent.namespaceURI, tag) : one;
      if (node) node.replaceWith(fresh); else parent.append(fresh);
      node = fresh;
    }
    if (plain) {
      const [, former, words] = node.told ?? [tag, {}, ""];
      for (const name in attributes) if (attributes[name] !== former[name]) {
        if (attributes[name] === null) node.removeAttribute(name);
        else node.setAttribute(name, attributes[name]);
      }
      for (const name in former) if (!(name in attributes)) node.removeAttribute(name);
      node.told = one;
      if (Array.isArray(inner)) fill(node, inner);
      else if (inner !== words && inner && node.firstChild?.data) node.firstChild.data = inner;
      else if (inner !== words) node.textContent = inner;
    }
    node = node.nextSibling;
  }
  while (node) {
    const next = node.nextSibling;
    node.remove();
    node = next;
  }
}

// The mark of a text or picture, as fill() takes it: a star for a match, else a dot.
const markOf = (match, r, look) => match ? ["polygon", { points: STAR, ...look }]
  : ["circle", { r, ...look }];

// A node that does not shrink while it is as wide: what is below it stays there from view to view,
// and a browser paints less anew.
function steady(node) {
  let wide = 0;
  new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (width === wide) node.style.minHeight = `${height}px`;
    else requestAnimationFrame(() => { node.style.minHeight = ""; });
    wide = width;
  }).observe(node);
  return node;
}

function scaleOf({ label, colours, ends }) { // a legend of colours
  const wide = 200, box = wide / colours.length;
  return svg("svg", { viewBox: `0 0 ${wide + 160} 20`, width: wide + 160, role: "img",
    "aria-label": `Colours of ${label} from ${ends.join(" to ")}` }, [
    svg("text", { x: 0, y: 15 }, label),
    svg("text", { x: 110, y: 15, "text-anchor": "end" }, ends[0]),
    ...colours.map((colour, i) => svg("rect", { x: 116 + i * box, y: 2, width: box, height: 16,
      fill: colour })), svg("text", { x: 122 + wide, y: 15 }, ends[1])]);
}

function follow(event, move) { // a pointer, until it is released
  event.preventDefault();
  const own = (act) => (other) => other.pointerId === event.pointerId && act(other);
  const moves = own(move), ends = ["pointerup", "pointercancel"];
  const stop = own(() => {
    window.removeEventListener("pointermove", moves);
    for (const end of ends) window.removeEventListener(end, stop);
  });
  window.addEventListener("pointermove", moves);
  for (const end of ends) window.addEventListener(end, stop);
}

const hearing = new WeakSet();
function hearKeys(root, listen) { // once; none reaches the notebook, where 1 to 4 make headings
  if (hearing.has(root)) return;
  hearing.add(root);
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", listen);
}

// One message at a time: while one is on its way only the newest of each thing waits. The serials of
// each page begin with a name of its own: two pages may show one explorer.
function mailbox(model, own, onSilence) {
  let serial = 0, open = null, since = null, timer = null, silent = false, lost = null;
  const waiting = new Map();
  const look = () => { // one timer for many answers, for to stop one takes a browser long
    timer = null;
    if (since === null) return;
    const left = since + PATIENCE - performance.now();
    if (left > 0) timer = setTimeout(look, left);
    else { silent = true; onSilence(SILENT); }
  };
  // Only a reader waits for an answer: a look that a busy kernel leaves for later is no trouble.
  const watch = (name) => {
    if (name === "poll") return;
    since ??= performance.now();
    timer ??= setTimeout(look, PATIENCE);
  };
  const rest = () => {
    if (lost !== null) clearTimeout(lost);
    since = lost = null;
    silent = false;
  };
  const next = () => {
    if (open !== null || !waiting.size) return;
    const [key, [name, value]] = waiting.entries().next().value;
    waiting.delete(key);
    open = `${own}/${++serial}`;
    watch(name);
    if (name === "poll") lost = setTimeout(() => {
      open = null;
      waiting.set("poll ", ["poll", null]); // the page asks for the next look when one is answered
      next();
    }, LOST);
    try {
      model.send({ name, value: value ?? null, serial: open });
    } catch { // the kernel was shut down: nothing can be sent any more
      forget();
      onSilence(GONE);
    }
  };
  const forget = () => { rest(); waiting.clear(); open = null; };
  return {
    send(name, value, which = "") {
      // What was sent may be lost, as where a connection broke: who asks again is answered again.
      if (silent && name !== "poll") forget();
      waiting.set(`${name} ${which}`, [name, value]);
      watch(name); // also while a look is on its way
      next();
    },
    answer(answered) {
      if (answered !== open) return;
      rest();
      open = null;
      next();
    },
    busy: () => open !== null || waiting.size > 0,
    forget,
  };
}

const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
const english = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const told = (one) => one.says ?? english.format(one.value);
const put = (node, words) => { if (node.textContent !== words) node.textContent = words; };
const isOff = (node) => node.getAttribute("aria-disabled") === "true";

function controlOf(one, id, send) {
  const common = { id, "data-key": `control-${one.name}` };
  if (one.kind === "button") // one that is off keeps the focus: else the keys go to the notebook
    return make("button", { ...common, type: "button", "aria-disabled": String(one.off),
      onclick: (e) => isOff(e.currentTarget) || send(one.name) }, one.label);
  if (one.kind === "select") {
    const options = one.options.map(([key, label]) =>
      make("option", { value: key, selected: key === one.value }, label));
    return make("select", { ...common, onchange: (e) => send(one.name, e.target.value) }, options);
  }
  if (one.kind === "checkbox")
    return make("input", { ...common, type: "checkbox", checked: one.value,
      onchange: (e) => send(one.name, e.target.checked) });
  if (one.kind === "text") {
    let entered = null; // Enter asks again, too; the change that follows it is the same
    return make("input", { ...common, type: "text", value: one.value, placeholder: one.hint,
      size: one.letters,
      onkeydown: (e) => {
        if (e.key === "Enter") send(one.name, (entered = e.target.value));
      },
      onchange: (e) => {
        if (e.target.value !== entered) send(one.name, e.target.value);
        entered = null;
      } });
  }
  if (one.kind === "file")
    return make("input", { ...common, type: "file", accept: one.kinds,
      onclick: (e) => { e.target.value = ""; }, // or the same file twice would be no change
      onchange: (e) => handIn(e.target.files[0], one, send) });
  return make("input", { ...common, type: "range", min: one.min, max: one.max, step: one.step,
    value: one.value, "aria-valuetext": told(one),
    oninput: (e) => send(one.name, Number(e.target.value)) });
}

function handIn(file, one, send) {
  if (!file) return;
  const about = { name: file.name, size: file.size, data: null };
  if (file.size > one.most) return send(one.name, about);
  const reader = new FileReader();
  reader.onerror = () => send.say(`${file.name} could not be read `
    + `(${reader.error?.message ?? "for no reason that the browser names"}). Is it still where it `
    + "was? Choose it again, or a copy of it.");
  reader.onload = () => send(one.name, { ...about, data: reader.result.split(",")[1] ?? "" });
  reader.onloadend = () => send.reading(-1); // after either
  send.reading(1);
  reader.readAsDataURL(file);
}

function fieldOf(one, prefix, send) {
  const id = `${prefix}-${one.name}`, control = controlOf(one, id, send);
  if (one.kind === "button") return control;
  const letters = one.says ? 2 * english.format(one.max).length + 4 : 0; // "9 of 10": as wide as
  const shown = one.kind === "range" ? make("output", { for: id, // "10 of 10", or the slider jumps
    style: letters > 0 && `min-width:${letters}ch` }, told(one)) : null;
  return make("span", { class: "itr-field" },
    [make("label", { for: id }, one.label), control, shown]);
}

// Controls without their values: they are made again only if these change, so that one that is being
// dragged, written or pressed is left alone.
const kindsOf = (controls) => JSON.stringify(controls.map(({ value, says, off, ...rest }) =>
  rest.kind === "button" ? { ...rest, label: "" } : rest));

function setValues(nodes, controls) {
  for (const [at, one] of controls.entries()) {
    const control = nodes[at];
    if (one.kind === "button") {
      control.setAttribute("aria-disabled", String(one.off));
      put(control, one.label);
    }
    if (one.kind === "button" || one.kind === "file") continue;
    if (one.kind === "range") {
      put(control.nextElementSibling, told(one));
      control.setAttribute("aria-valuetext", told(one));
    }
    if (control === document.activeElement) continue;
    if (one.kind === "checkbox") control.checked = one.value;
    else control.value = one.value;
  }
}

function keepingFocus(root, change) {
  const key = root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  change();
  const node = key && root.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (node && node !== document.activeElement) node.focus({ preventScroll: true });
}

let count = 0;

function render({ model, el }) {
  const prefix = `itr-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}-${++count}`;
  const title = make("h3"), form = make("div", { class: "itr-controls", role: "group" });
  const problem = make("p", { class: "itr-problem", role: "alert" });
  const stage = make("div", { class: "itr-stage" });
  const note = make("p", { class: "itr-note", role: "status" });
  const numbers = make("dl", { class: "itr-numbers", "aria-live": "polite" });
  const root = make("section", { class: "itr-explorer" },
    [title, form, problem, note, stage, numbers]);
  steady(numbers);
  let kinds = "", nodes = [], later = null;
  const say = (words) => { problem.textContent = words; };
  let gone = false; // the kernel that made this
  let files = 0; // that are being read, to be sent then
  const box = mailbox(model, prefix, (why) => say(gone ? GONE : why));
  const busy = () => files > 0 || box.busy();
  const mark = () => { root.dataset.busy = busy() ? "1" : "0"; };
  const send = (...what) => {
    if (gone) { box.forget(); say(GONE); } // sent all the same: a lost connection may be back
    box.send(...what);
    mark();
  };
  send.idle = () => !busy();
  send.reading = (more) => { files += more; mark(); };
  send.say = say;
  const end = () => {
    gone = true;
    box.forget();
    root.dataset.busy = "0";
    say(GONE);
  };
  const poll = (pause) => {
    clearTimeout(later);
    if (!pause) return;
    later = setTimeout(() => {
      if (!document.hidden && root.offsetParent !== null && !box.busy()) send("poll");
      else poll(pause);
    }, pause);
  };
  const update = () => {
    const view = model.get("view");
    gone = false;
    box.answer(view.serial);
    keepingFocus(root, () => {
      put(title, view.title);
      form.setAttribute("aria-label", view.title);
      put(problem, view.problem);
      put(note, view.note);
      fill(numbers, view.numbers.map(([label, value]) =>
        ["div", {}, [["dt", {}, `${label}: `], ["dd", {}, value]]]));
      if (kindsOf(view.controls) !== kinds) {
        kinds = kindsOf(view.controls);
        renewChildren(form, view.controls.map((one) => fieldOf(one, prefix, send)));
        nodes = view.controls.map(({ name }) =>
          form.querySelector(`#${CSS.escape(`${prefix}-${name}`)}`));
      }
      setValues(nodes, view.controls);
      draw(stage, view.stage, send);
    });
    mark();
    poll(view.stage.poll);
  };
  model.on("change:view", update);
  model.on("comm_live_update", end); // Jupyter says it of all widgets when a kernel is restarted
  update();
  el.append(root);
  return () => {
    poll(0);
    box.forget();
    model.off("change:view", update);
    model.off("comm_live_update", end);
  };
}

export default { render };
