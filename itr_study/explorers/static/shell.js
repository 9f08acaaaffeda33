// What all explorers share: controls with labels, a stage, a sentence, a problem. Each drawing
// gives draw(stage, shown, send): it fills the stage from `shown`, what Python says, and calls
// send(name, value) with what a reader does, and of what, where one name is for several things:
// send(name, value, which). send.idle() says whether all was read and answered, send.say(words)
// tells why something could not be sent. Whatever can be focused has a data-key of its own, so that
// the focus stays where it was when the stage is drawn anew. Where what Python says holds `poll`, in
// ms, a "poll" is sent after that time, while the page is seen.

const PATIENCE = 10000; // ms without an answer, after which the kernel is taken for gone
const LOST = 6 * PATIENCE; // ms after which a look that was not answered is made again
const SILENT = "The kernel does not answer. It may be at work in another cell; if it is gone, "
  + "choose Kernel > Restart, and run this cell again.";
const GONE = "This explorer is not alive any more: its kernel was restarted or shut down. Run its "
  + "cell again; after a restart, the cells above it first.";
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, children = [], space = null) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false && value !== undefined)
      node.setAttribute(name, value === true ? "" : value);
  }
  // Keys pressed on it are meant for it: JupyterLab would take its arrows from a slider, and delete
  // the cell at "d d".
  if ("data-key" in attributes) node.setAttribute("data-lm-suppress-shortcuts", "true");
  node.append(...[children].flat().filter((one) => one !== null)); // texts stay texts
  return node;
}

const svg = (tag, attributes, children) => make(tag, attributes, children, SVG);

// One message at a time: while one is on its way only the newest of each thing waits. Two pages may
// show one explorer: the serials of each begin with a name of its own, or the answer to the one
// could be taken for that to the other, and an answer equal to the last would not be sent at all.
function mailbox(model, own, onSilence) {
  let serial = 0, open = null, timer = null, silent = false, lost = null;
  const waiting = new Map();
  // Only a reader waits for an answer: a look that a busy kernel leaves for later is no trouble.
  const watch = (name) => {
    if (name !== "poll") timer ??= setTimeout(() => { silent = true; onSilence(SILENT); }, PATIENCE);
  };
  const rest = () => {
    clearTimeout(timer);
    clearTimeout(lost);
    timer = null;
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
const told = (one) => one.says ?? one.value.toLocaleString("en", { maximumFractionDigits: 6 });

// A button that is off can be focused: one that was pressed last and cannot be now would lose the
// focus, and the keys would go to the notebook.
function offIf(control, off) {
  control.setAttribute("aria-disabled", String(off));
  return control;
}

function controlOf(one, id, send) {
  const common = { id, "data-key": `control-${one.name}` };
  if (one.kind === "button")
    return offIf(make("button", { ...common, type: "button", onclick: (e) => {
      if (e.currentTarget.getAttribute("aria-disabled") !== "true") send(one.name);
    } }, one.label), one.off);
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
  const shown = one.kind === "range" ? make("output", { for: id }, told(one)) : null;
  return make("span", { class: "itr-field" },
    [make("label", { for: id }, one.label), control, shown]);
}

// What a control is, without its value: as long as it stays so, it is not made anew, and a slider
// that is being dragged, a line that is being written or a button that is being pressed is left
// alone.
const kindsOf = (controls) => JSON.stringify(controls.map(({ value, says, off, ...rest }) =>
  rest.kind === "button" ? { ...rest, label: "" } : rest));

function setValues(form, prefix, controls) {
  for (const one of controls) {
    const control = form.querySelector(`#${CSS.escape(`${prefix}-${one.name}`)}`);
    if (one.kind === "button") offIf(control, one.off).textContent = one.label;
    if (one.kind === "button" || one.kind === "file") continue;
    if (one.kind === "range") {
      control.parentNode.querySelector("output").textContent = told(one);
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
  if (key) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

let count = 0;

function render({ model, el }) {
  const prefix = `itr-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}-${++count}`;
  const title = make("h3"), form = make("div", { class: "itr-controls", role: "group" });
  const problem = make("p", { class: "itr-problem", role: "alert" });
  const stage = make("div", { class: "itr-stage" });
  const sentence = make("p", { class: "itr-sentence", "aria-live": "polite" });
  const root = make("section", { class: "itr-explorer" }, [title, form, problem, stage, sentence]);
  let kinds = "", later = null;
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
      title.textContent = view.title;
      form.setAttribute("aria-label", view.title);
      problem.textContent = view.problem;
      sentence.textContent = view.sentence;
      if (kindsOf(view.controls) !== kinds) {
        kinds = kindsOf(view.controls);
        form.replaceChildren(...view.controls.map((one) => fieldOf(one, prefix, send)));
      } else setValues(form, prefix, view.controls);
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
