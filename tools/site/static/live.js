// Joins the explorers of a page with the front ends of the widgets: here no kernel answers, but
// explorers.js does, once a frame at most.
"use strict";

(() => {
  const soon = (act) => (document.hidden ? setTimeout(act, 0) : requestAnimationFrame(act));

  class Model { // what anywidget gives a front end
    constructor(explorer) {
      this.explorer = explorer;
      this.listeners = new Set();
      this.view = { ...explorer.view(), serial: 0 };
    }
    get() { return this.view; }
    on(name, listener) { if (name === "change:view") this.listeners.add(listener); }
    off(name, listener) { this.listeners.delete(listener); }
    send({ name, value, serial }) {
      soon(() => {
        this.explorer.handle(name, value);
        this.show(serial);
      });
    }
    show(serial) {
      this.view = { ...this.explorer.view(), serial };
      for (const listener of this.listeners) listener();
    }
  }

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  async function inflated(text) {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return (await new Response(stream).arrayBuffer());
  }

  // The addresses of small pictures, cut from one sheet when first shown, or before that, while the
  // page rests: a slider that moves shows others with each frame. A browser reads no address twice
  // while an image holds it.
  async function cutter({ ids, sheet, side, columns }) {
    const image = new Image(), canvas = document.createElement("canvas"), cut = new Map();
    image.src = sheet;
    await image.decode();
    canvas.width = canvas.height = side;
    const picture = (at) => {
      if (!cut.has(at)) {
        canvas.getContext("2d").drawImage(image, (at % columns) * side,
          Math.floor(at / columns) * side, side, side, 0, 0, side, side);
        cut.set(at, Object.assign(new Image(), { src: canvas.toDataURL("image/jpeg", 0.9) }));
      }
      return cut.get(at).src;
    };
    let next = 0;
    const rest = window.requestIdleCallback ?? ((act) => setTimeout(act, 50)); // Safari has none
    const ahead = (free) => {
      do picture(next++); while (next < ids.length && free?.timeRemaining() > 2);
      if (next < ids.length) rest(ahead);
    };
    rest(ahead);
    return picture;
  }

  let gallery = null;
  async function openGallery() {
    gallery ??= (async () => {
      const data = ITR_DATA.gallery, codes = await inflated(data.relevance);
      const relevance = data.wide ? new Uint16Array(codes) : new Uint8Array(codes);
      return [new ITR_EXPLORERS.Gallery(data, bytes, relevance), await cutter(data)];
    })();
    return gallery;
  }

  const MAKE = {
    push_pull: async (place) => new ITR_EXPLORERS.PushPull(ITR_DATA.push_pull,
      ITR_GRAPH.open(ITR_LOSSES), place.dataset.loss),
    learning: async () => new ITR_EXPLORERS.Learning(ITR_DATA.learning),
    judge: async () => new ITR_EXPLORERS.Judge(ITR_DATA.judge),
    who_moved: async () => new ITR_EXPLORERS.WhoMoved(...await openGallery()),
    search: async () => new ITR_EXPLORERS.Search(...await openGallery()),
  };

  async function show(place) {
    const name = place.dataset.explorer;
    try {
      const model = new Model(await MAKE[name](place)), el = document.createElement("div");
      ITR_FRONT[name].render({ model, el });
      place.replaceChildren(el);
      model.show(0); // again, now that its width is known
      let wide = place.clientWidth;
      new ResizeObserver(() => { // a phone was turned
        if (wide !== (wide = place.clientWidth)) model.show(model.view.serial);
      }).observe(place);
    } catch (error) { // an old browser: the picture below stays
      const words = document.createElement("p");
      words.textContent = `This cannot be shown alive in your browser (${error.message}). A browser `
        + "of the last three years can.";
      place.prepend(words);
      console.warn(error);
    }
  }

  // The colours of the theme, as the widgets ask for them.
  function follow() {
    const dark = matchMedia("(prefers-color-scheme: dark)"), { body } = document;
    const set = () => {
      const theme = body.dataset.theme ?? "auto";
      body.dataset.jpThemeLight = String(theme === "auto" ? !dark.matches : theme === "light");
    };
    set();
    dark.addEventListener("change", set);
    new MutationObserver(set).observe(body, { attributeFilter: ["data-theme"] });
  }

  follow();
  const seen = new IntersectionObserver((found) => { // what is not looked at costs nothing
    for (const one of found) if (one.isIntersecting) {
      seen.unobserve(one.target);
      show(one.target);
    }
  }, { rootMargin: "300px" });
  for (const place of document.querySelectorAll("[data-explorer]")) seen.observe(place);
})();
