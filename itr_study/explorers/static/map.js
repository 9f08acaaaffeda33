// Map: points on a canvas, a rectangle over it, and next to it what is in the rectangle. Points and
// colours come as arrays, asked for by name and kept.

const SIDE = 470, EDGE = 58; // pixels of the square of points; of the room for its ticks
const NEARER = 1.25; // of one turn of the wheel, or one press of a key
const GLIDE = 400; // ms in which points move from one frame to another
const MARK = { image: 5, text: 4 };
const SIGN = { image: "■", text: "●" };
const maps = new WeakMap(); // of each stage

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

class PlaneMap {
  constructor(stage, send) {
    this.stage = stage; this.send = send; this.arrays = new Map(); this.asked = new Set();
    this.ahead = {}; // where the reader has moved things to, until Python has answered
    const keys = { tabindex: 0, role: "application" };
    this.canvas = make("canvas", { ...keys, "data-key": "map",
      style: `display:block;width:${SIDE + EDGE}px;height:${SIDE + EDGE}px;touch-action:none;`
        + "cursor:crosshair",
      onkeydown: (e) => this.key(e, "window"), onpointerdown: (e) => this.press(e),
      onwheel: (e) => this.wheel(e) });
    this.box = make("div", { ...keys, "data-key": "rectangle",
      style: "position:absolute;box-sizing:border-box;border:2px dashed var(--itr-ink);cursor:move;"
        + "box-shadow:0 0 0 2px var(--itr-paper),inset 0 0 0 2px var(--itr-paper);"
        + "touch-action:none", onkeydown: (e) => this.key(e, "rectangle"),
      onpointerdown: (e) => this.carry(e), onwheel: (e) => this.wheel(e) });
    this.numbers = make("div", { "aria-hidden": "true" });
    const clip = make("div", { style: `position:absolute;left:${EDGE}px;top:0;width:${SIDE}px;`
      + `height:${SIDE}px;overflow:hidden;pointer-events:none` }, [this.box, this.numbers]);
    this.box.style.pointerEvents = "auto";
    this.legend = make("div"); this.heading = make("p", { class: "itr-hint" });
    this.list = make("ol", { style: "display:grid;grid-template-columns:repeat(auto-fill,"
      + "minmax(120px,1fr));gap:8px 12px;margin:0;padding:0;list-style:none" });
    this.count = make("p", { class: "itr-hint" });
    const left = [make("div", { style: "position:relative" }, [this.canvas, clip]), this.legend];
    const right = { style: "flex:1 1 260px;min-width:260px" };
    stage.replaceChildren(this.heading,
      make("div", { style: "display:flex;flex-wrap:wrap;gap:20px" },
        [make("div", { style: `width:${SIDE + EDGE}px` }, left),
          make("div", right, [this.count, this.list])]));
    const weak = new WeakRef(this); // or every map ever shown would stay in memory
    const again = () => weak.deref()?.paint();
    new MutationObserver(again).observe(document.body,
      { attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new ResizeObserver(again).observe(stage); // its colours hold on the page
  }

  get dark() { return getComputedStyle(this.stage).colorScheme === "dark"; } // as shell.css says
  get window() { return this.ahead.window ?? this.shown.window; }
  get rectangle() { return this.ahead.rectangle ?? this.shown.rectangle; }
  across(x) { return ((x - this.window.x) / this.window.half + 1) / 2 * SIDE; }
  down(y) { return (1 - (y - this.window.y) / this.window.half) / 2 * SIDE; }

  placeOf(event) { // of a pointer, on the plane
    const at = this.canvas.getBoundingClientRect(), { x, y, half } = this.window;
    return { x: x + ((event.clientX - at.left - EDGE) / SIDE * 2 - 1) * half,
      y: y - ((event.clientY - at.top) / SIDE * 2 - 1) * half };
  }

  update(shown) {
    this.shown = shown;
    if (this.send.idle()) this.ahead = {};
    for (const [key, text] of Object.entries(shown.sent))
      this.arrays.set(key, key.startsWith("picture/") ? text
        : key.startsWith("places/") ? new Uint16Array(bytesOf(text).buffer) : bytesOf(text));
    const needed = [shown.places, shown.shade, ...shown.gallery.map((one) => one.picture)];
    const missing = needed.filter((key) => key && !this.arrays.has(key) && !this.asked.has(key));
    if (missing.length) {
      missing.forEach((key) => this.asked.add(key));
      this.send("send", missing, missing.join());
    }
    this.describe();
    this.paint();
    this.fillGallery();
  }

  describe() {
    const { shown } = this;
    this.heading.textContent = "Drag over the map to choose what is listed; drag the rectangle to "
      + "move it. Keys on either: arrows move it, + and − zoom or resize, 0 resets it. Ctrl and the "
      + "wheel zoom; Shift and dragging move the map.";
    this.canvas.setAttribute("aria-label", `Map of ${shown.images} images and ${shown.texts} texts, `
      + `${shown.axes[0]} across, ${shown.axes[1]} upwards, coloured by ${shown.legend.label}; `
      + `arrow keys move it, plus and minus zoom`);
    const { x, y } = this.rectangle;
    this.box.setAttribute("aria-label", `Rectangle from ${x[0].toFixed(2)} to ${x[1].toFixed(2)} `
      + `across and ${y[0].toFixed(2)} to ${y[1].toFixed(2)} upwards, ${shown.chosen} in it; arrow `
      + `keys move it, plus and minus resize it`);
  }

  paint() {
    this.drawPoints();
    this.placeRectangle();
    this.drawLegend();
  }

  paintSoon() { // once a frame, however often the pointer moves
    if (this.soon) return;
    this.soon = requestAnimationFrame(() => { this.soon = null; this.paint(); });
  }

  glide() { // how far the points have come from where they were in another frame, 1 = there
    const at = this.arrays.get(this.shown.places);
    if (at && at !== this.at) {
      const still = !this.at || matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.from = this.at; this.at = at; this.since = still ? -GLIDE : performance.now();
    }
    const share = this.at ? clamp((performance.now() - this.since) / GLIDE, 0, 1) : 1;
    if (share < 1) this.paintSoon();
    return share;
  }

  drawPoints() {
    const ratio = window.devicePixelRatio || 1, size = SIDE + EDGE, { shown } = this;
    const share = this.glide();
    const look = getComputedStyle(this.stage), faint = look.getPropertyValue("--itr-faint");
    const now = JSON.stringify([this.window, shown.places, shown.shade, shown.ticks, this.dark,
      ratio, faint, share, this.arrays.has(shown.places), this.arrays.has(shown.shade)]);
    if (now === this.drawn) return; // a rectangle that is moved leaves the points alone
    this.drawn = now;
    if (this.canvas.width !== Math.round(size * ratio))
      this.canvas.width = this.canvas.height = Math.round(size * ratio);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size, size);
    pen.translate(EDGE, 0);
    this.drawAxes(pen, look);
    const shade = this.arrays.get(shown.shade) ?? this.shade, { at, from } = this;
    if (!at || !shade) return;
    this.shade = shade;
    pen.save();
    pen.beginPath(); pen.rect(0, 0, SIDE, SIDE); pen.clip();
    const [midX, midY, whole] = shown.whole;
    const colours = shown.legend[this.dark ? "dark" : "light"], unit = 2 * whole / shown.finest;
    pen.lineWidth = 1;
    const mix = (n) => share < 1 ? from[n] + (at[n] - from[n]) * share : at[n];
    const mark = (n, kind) => {
      const x = this.across(midX - whole + mix(2 * n) * unit), half = MARK[kind] / 2;
      const y = this.down(midY - whole + mix(2 * n + 1) * unit), hollow = shade[n] >= shown.steps;
      if (x < -4 || y < -4 || x > SIDE + 4 || y > SIDE + 4) return;
      pen.fillStyle = pen.strokeStyle = colours[shade[n] % shown.steps];
      if (kind === "image")
        hollow ? pen.strokeRect(x - half, y - half, 2 * half, 2 * half)
          : pen.fillRect(x - half, y - half, 2 * half, 2 * half);
      else {
        pen.beginPath(); pen.arc(x, y, half, 0, 2 * Math.PI);
        hollow ? pen.stroke() : pen.fill();
      }
    };
    pen.globalAlpha = 0.8;
    for (const hollow of [false, true]) { // few over many: hollow over filled, images over texts
      for (let n = shown.images; n < shown.images + shown.texts; n++)
        if (shade[n] >= shown.steps === hollow) mark(n, "text");
      for (let n = 0; n < shown.images; n++)
        if (shade[n] >= shown.steps === hollow) mark(n, "image");
    }
    pen.restore();
  }

  drawAxes(pen, look) {
    const { shown } = this;
    pen.font = "12px system-ui, sans-serif";
    pen.strokeStyle = look.getPropertyValue("--itr-line"); pen.lineWidth = 1;
    pen.strokeRect(0.5, 0.5, SIDE - 1, SIDE - 1);
    pen.fillStyle = look.getPropertyValue("--itr-faint");
    const tick = (x, y, toX, toY, text, dx, dy) => {
      if (x > SIDE || y > SIDE || toX < 0 || toY < 0) return;
      pen.beginPath(); pen.moveTo(x, y); pen.lineTo(toX, toY); pen.stroke();
      pen.fillText(text, x + dx, y + dy);
    };
    pen.textAlign = "center";
    for (const [at, text] of shown.ticks[0]) {
      const x = this.across(at);
      tick(x, SIDE, x, SIDE + 4, text, 0, 17);
    }
    pen.textAlign = "right";
    for (const [at, text] of shown.ticks[1]) {
      const y = this.down(at);
      tick(-4, y, 0, y, text, -3, 4);
    }
    pen.textAlign = "center";
    pen.fillText(shown.axes[0], SIDE / 2, SIDE + 36);
    pen.save(); pen.rotate(-Math.PI / 2); pen.fillText(shown.axes[1], -SIDE / 2, -EDGE + 12);
    pen.restore();
  }

  placeRectangle() {
    const { x, y } = this.rectangle, left = this.across(x[0]), top = this.down(y[1]);
    Object.assign(this.box.style, { left: `${left}px`, top: `${top}px`,
      width: `${Math.max(this.across(x[1]) - left, 6)}px`,
      height: `${Math.max(this.down(y[0]) - top, 6)}px` });
    const right = Math.min(this.across(x[1]), SIDE), high = Math.max(top, 0);
    this.numbers.replaceChildren(...this.shown.gallery.map((one, n) => {
      const text = String(n + 1), wide = 9 + 8 * text.length; // pixels, about
      const atX = this.across(one.place[0]), atY = this.down(one.place[1]);
      const left = atX + 3 + wide > right ? atX - 3 - wide : atX + 3; // stays in the rectangle
      return make("span", { style: `position:absolute;left:${left}px;`
        + `top:${atY - 20 < high ? atY + 4 : atY - 20}px;font:bold 12px/16px system-ui;`
        + "padding:0 3px;background:var(--itr-paper);color:var(--itr-ink);"
        + "border:1px solid var(--itr-ink);border-radius:7px" }, text);
    }));
  }

  drawLegend() {
    const { legend } = this.shown, colours = legend[this.dark ? "dark" : "light"];
    const marks = ["image", "text"].map((kind, n) => make("span", { style: "margin-right:16px" }, [
      make("span", { style: legend.ticks.length ? null : `color:${colours[n]}` }, SIGN[kind]),
      ` ${kind}`]));
    if (legend.hollow)
      marks.push(make("span", { style: "display:block" },
        `■ ● ${legend.filled}; □ ○ ${legend.hollow}`));
    const hint = make("p", { class: "itr-hint", style: `margin-left:${EDGE}px` },
      [...marks, make("b", { style: "display:block" }, `Colour: ${legend.label}`)]);
    const scale = make("div", { role: "img", style: "position:relative;height:44px;"
      + `width:${SIDE}px;margin:4px 0 0 ${EDGE}px`, "aria-label": `Scale: ${legend.label}, `
      + legend.ticks.map((tick) => tick[1]).join(", ") }, [
      make("div", { style: "height:12px;border:1px solid var(--itr-line);"
        + `background:linear-gradient(to right,${colours.join()})` }),
      ...legend.ticks.map(([at, text]) => make("span", { style: `position:absolute;top:15px;`
        + `left:${100 * at}%;transform:translateX(-50%);font-size:12px` }, text))]);
    this.legend.replaceChildren(hint, ...legend.ticks.length ? [scale] : []);
  }

  fillGallery() {
    const { gallery, chosen } = this.shown;
    this.count.textContent = `In the rectangle: ${chosen.toLocaleString("en")}, listed: `
      + `${gallery.length}. Rank of the match, and how many queries find it among the first ten:`;
    this.list.replaceChildren(...gallery.map((one, n) => {
      const source = one.picture && this.arrays.get(one.picture);
      return make("li", { style: "overflow-wrap:anywhere" }, [
        make("b", {}, `${n + 1} ${SIGN[one.kind]} `), `rank ${one.rank.toLocaleString("en")}`,
        make("div", {}, `found by ${one.found.toLocaleString("en")}`),
        source ? make("img", { src: source, alt: one.says, title: one.item,
          style: "display:block;max-width:100%;max-height:96px" }) : null,
        make("div", {}, one.kind === "text" ? `“${one.item}”` : one.item)]);
    }));
  }

  look(x, y, half) {
    const [midX, midY, whole] = this.shown.whole;
    half = clamp(half, whole / this.shown.nearest, whole);
    this.ahead.window = { x: clamp(x, midX - whole + half, midX + whole - half),
      y: clamp(y, midY - whole + half, midY + whole - half), half };
    this.send("window", this.ahead.window);
    this.paintSoon();
  }

  choose(x, y) {
    const [midX, midY, whole] = this.shown.whole, cut = (ends, mid) =>
      [...ends].sort((a, b) => a - b).map((end) => clamp(end, mid - whole, mid + whole));
    this.ahead.rectangle = { x: cut(x, midX), y: cut(y, midY) };
    this.send("brush", this.ahead.rectangle);
    this.placeRectangle();
  }

  key(event, what) {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const way = ways[event.key], size = { "+": 1, "=": 1, "-": -1, "−": -1 }[event.key];
    const known = way || size || event.key === "0";
    if (event.ctrlKey || event.metaKey || event.altKey || !known) return;
    event.preventDefault();
    const { fine } = this.shown, { x, y } = this.rectangle, view = this.window;
    if (event.key === "0") {
      this.send(what === "window" ? "all" : "into_view");
      this.ahead = {};
    } else if (what === "window") {
      const [right, up] = way ?? [0, 0];
      this.look(view.x + 2 * fine * right, view.y + 2 * fine * up,
        view.half / NEARER ** (size ?? 0));
    } else {
      const [right, up] = way ?? [0, 0];
      const change = ([low, high], shift) => {
        const grow = size && high - low + 2 * fine * size > 0 ? fine * size : 0;
        return [low + fine * shift - grow, high + fine * shift + grow];
      };
      this.choose(change(x, right), change(y, up));
    }
  }

  press(event) { // a new rectangle; with Shift the map is moved
    this.canvas.focus({ preventScroll: true });
    const from = this.placeOf(event), view = this.window;
    follow(event, (moved) => {
      const to = this.placeOf(moved);
      if (!event.shiftKey) return this.choose([from.x, to.x], [from.y, to.y]);
      this.look(this.window.x + from.x - to.x, this.window.y + from.y - to.y, view.half);
    });
  }

  carry(event) {
    if (event.shiftKey) return this.press(event);
    this.box.focus({ preventScroll: true });
    const from = this.placeOf(event), { x, y } = this.rectangle;
    follow(event, (moved) => {
      const to = this.placeOf(moved);
      this.choose(x.map((end) => end + to.x - from.x), y.map((end) => end + to.y - from.y));
    });
  }

  wheel(event) { // alone it scrolls the page
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = this.placeOf(event), view = this.window, factor = NEARER ** Math.sign(event.deltaY);
    this.look(at.x + (view.x - at.x) * factor, at.y + (view.y - at.y) * factor, view.half * factor);
  }
}

function draw(stage, shown, send) {
  if (!maps.has(stage)) maps.set(stage, new PlaneMap(stage, send));
  maps.get(stage).update(shown);
}
