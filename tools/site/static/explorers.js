// The states of the explorers, as itr_study/explorers has them in Python: what a reader does, and
// what is drawn. The drawings are those of the widgets. No page is touched here, so Node can test it.
"use strict";

const ITR_EXPLORERS = (() => {
  const round = (value, digits) => {
    // as Python: a value in the middle goes to the even digit
    const text = value.toFixed(digits), scaled = Math.abs(value) * 10 ** digits;
    if (scaled % 1 !== 0.5 || scaled > 1e9) return text;
    const even = Math.floor(scaled) % 2 ? Math.ceil(scaled) : Math.floor(scaled);
    return ((Math.sign(value) * even) / 10 ** digits).toFixed(digits);
  };
  const number = (value, digits) => {
    const text = round(value, digits);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  };
  const english = new Intl.NumberFormat("en"); // once: it takes long to make
  const long = (value) => english.format(value);
  const range = (count) => [...Array(count).keys()];
  const total = (values) => values.reduce((a, b) => a + b, 0);

  class Explorer {
    constructor(title) { this.title = title; this.problem = ""; this.note = ""; this.events = {}; }

    handle(name, value) {
      this.problem = this.note = "";
      try {
        const one = this.controls().find((control) => control.name === name);
        const act = one ? one.act : this.events[name];
        if (!act) throw Error(`there is nothing called ${name} here`);
        act(value);
      } catch (error) {
        this.problem = error.message;
      }
    }

    view() {
      const controls = this.controls().map(({ act, ...shown }) => shown);
      return { title: this.title, controls, stage: this.stage(), note: this.note,
        numbers: Object.entries(this.numbers()), problem: this.problem };
    }
  }

  const button = (name, label, act, off = false) =>
    ({ kind: "button", name, label, act, value: null, off });
  const choice = (name, label, act, value, options) =>
    ({ kind: "select", name, label, act, value, options: Object.entries(options) });
  const slider = (name, label, act, value, min, max, step, says = null) =>
    ({ kind: "range", name, label, act, value, min, max, step, says });
  function browse(kind, label, go, place, count) {
    const jump = (at) => {
      if (!(at >= 1 && at <= count)) throw Error(`there is no place ${at}; they count from 1 to `
        + `${long(count)}`);
      go(at - 1);
    };
    return [button("previous", `Previous ${kind}`, () => jump(place), place === 0),
      slider("go", label, jump, place + 1, 1, count, 1, `${long(place + 1)} of ${long(count)}`),
      button("next", `Next ${kind}`, () => jump(place + 2), place === count - 1)];
  }
  function numberLine(name, label, act, index, count) {
    return { kind: "text", name, label: `${label}, 1 to ${long(count)}`, value: long(index + 1),
      letters: 6, act: (written) => {
        const plain = String(written).trim().replace(/[,'’\s]/g, "");
        const at = /^\d{1,9}$/.test(plain) ? Number(plain) : 0;
        if (at < 1 || at > count) throw Error(`${label} must be a whole number from 1 to `
          + `${long(count)}; got '${written}'`);
        act(at - 1);
      } };
  }

  // Measures of a list

  const gain = (relevance) => 2 ** Math.fround(relevance) - 1;
  function ndcg(scores, relevance) { // of equal scores the relevant ones come last
    const order = range(scores.length).sort((a, b) => scores[b] - scores[a]
      || relevance[a] - relevance[b]);
    const gains = new Float64Array(relevance).map(gain), best = gains.slice().sort().reverse();
    let reached = 0, ideal = 0;
    order.forEach((at, rank) => {
      reached += gains[at] / Math.log2(rank + 2);
      ideal += best[rank] / Math.log2(rank + 2);
    });
    return ideal > 0 ? reached / ideal : 0;
  }

  function kendall(scores, relevance, kind) {
    let agree = 0, differ = 0, other = 0;
    const n = scores.length, pairs = (n * (n - 1)) / 2;
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) {
      const a = Math.sign(scores[i] - scores[j]), b = Math.sign(relevance[i] - relevance[j]);
      agree += a * b;
      differ += a !== 0;
      other += b !== 0;
    }
    const fewest = Math.min(new Set(scores).size, new Set(relevance).size);
    const most = { a: pairs, b: Math.sqrt(differ * other),
      c: (n * n * (fewest - 1)) / (2 * fewest) }[kind];
    return most > 0 ? agree / most : 0;
  }

  // Push and pull

  const UNFELT = 0.01, STEP = 0.03, STEPS = 200, NEAR = 1e-6;
  const ZERO = "Nothing moves: the gradient is 0.";
  const BOUND = "Nothing moves: all scores that are pushed are at −1 or 1 already.";

  class PushPull extends Explorer {
    constructor({ items }, losses, loss = "triplet_hardest") {
      super("Push and pull");
      Object.assign(this, { items, losses, loss, events: { drag: (moved) => this.drag(moved) } });
      this.relevance = items.map((item) => item[1]);
      this.values = Object.fromEntries(Object.keys(losses).map((name) => [name, {}]));
      this.start();
    }

    start() { this.scores = this.items.map((item) => item[2]); this.steps = 0; }
    drag({ item, score }) { this.scores[item] = Math.min(1, Math.max(-1, score)); }

    push(name) {
      const told = this.losses[name];
      if (told.why) return { value: 0, up: this.scores.map(() => 0), felt: [],
        problem: `${told.name} cannot be computed here: ${told.why}` };
      const { value, gradient } = told.push(this.scores, this.relevance, this.values[name]);
      const up = gradient.map((one) => (one === 0 ? 0 : -one)), most = Math.max(...up.map(Math.abs));
      return { value, up, felt: up.map((one) => most > 0 && Math.abs(one) > UNFELT * most),
        problem: "" };
    }

    step() {
      const push = this.push(this.loss), most = Math.max(...push.up.map(Math.abs));
      if (push.problem) throw Error(push.problem);
      const moved = this.scores.map((score, at) => (most > 0
        ? Math.min(1, Math.max(-1, score + (STEP * push.up[at]) / most)) : score));
      const changed = moved.some((score, at) => score !== this.scores[at]);
      this.scores = moved;
      this.steps += changed;
      if (!changed) this.note = most > 0 ? BOUND : ZERO;
      return changed;
    }

    run() { for (let n = 0; n < STEPS; n++) if (this.matchesFirst() || !this.step()) return; }

    matchesFirst() {
      const of = (match) => this.scores.filter((_, at) => (this.relevance[at] >= 1) === match);
      return Math.min(...of(true)) > Math.max(...of(false));
    }

    // What a loss that compares pairs or windows compares, and what of it is in the wrong order.
    compared() {
      const told = this.losses[this.loss], values = this.values[this.loss];
      const labels = this.relevance.map((one) => 2 * one - 1), n = labels.length;
      if (this.loss === "kendall") {
        const least = told.argument("relaxation", values) - NEAR;
        let pairs = 0, wrong = 0;
        for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
          const apart = labels[i] - labels[j];
          if (!(least > 0 ? apart >= least : apart > 0)) continue;
          pairs++;
          wrong += this.scores[j] > this.scores[i];
        }
        return { "pairs compared": `${pairs} of ${(n * (n - 1)) / 2}`,
          "pairs in the wrong order": String(wrong) };
      }
      if (this.loss !== "kendall_window") return {};
      const { edges, relaxation } = told.further(values);
      const upTo = (value) => edges.filter((edge) => edge <= value).length;
      let parted = 0, wrong = 0;
      for (let w = 1; w <= edges.length; w++) {
        const above = this.scores.filter((_, at) => this.relevance[at] >= 1
          || upTo(labels[at] + NEAR - relaxation) >= w);
        const below = this.scores.filter((_, at) => upTo(labels[at] + NEAR) < w);
        parted += above.length > 0 && below.length > 0;
        wrong += above.length && below.length && Math.max(...below) > Math.min(...above);
      }
      return { "windows with texts above and below": `${parted} of ${edges.length}`,
        "windows in the wrong order": String(Number(wrong)) };
    }

    controls() {
      const told = this.losses[this.loss], values = this.values[this.loss];
      const names = Object.fromEntries(Object.entries(this.losses)
        .map(([name, one]) => [name, one.name]));
      const sliders = (told.sliders ?? []).map(([name, label, least, most, step, start, list]) => {
        const [low, high] = list ? [list[0], list[list.length - 1]] : [least, most];
        const set = (value) => {
          const near = list ? list.reduce((a, b) =>
            (Math.abs(b - value) < Math.abs(a - value) ? b : a)) : value;
          values[name] = near;
        };
        return slider(`set-${name}`, label, set, values[name] ?? start, low, high,
          list?.length > 1 ? list[1] - list[0] : step);
      });
      return [choice("loss", "Loss", (name) => { this.loss = name; }, this.loss, names), ...sliders,
        button("step", "Step", () => this.step()),
        button("run", "Step until the matches are first", () => this.run()),
        button("start", "Start again", () => this.start())];
    }

    stage() {
      this.pushes = Object.keys(this.losses).map((name) => [name, this.push(name)]);
      const push = this.pushes.find(([name]) => name === this.loss)[1];
      const most = Math.max(...push.up.map(Math.abs)) || 1;
      const order = range(this.items.length).sort((a, b) => this.scores[b] - this.scores[a]);
      return { loss: this.losses[this.loss].name,
        items: this.items.map(([text, relevance], at) => ({ text, relevance,
          match: relevance >= 1, score: Number(this.scores[at].toFixed(4)), up: push.up[at] / most,
          felt: Boolean(push.felt[at]), rank: order.indexOf(at) + 1 })),
        losses: this.pushes.map(([name, one]) => ({ name: this.losses[name].name,
          chosen: name === this.loss, problem: one.problem,
          value: one.problem ? "" : number(one.value, 3),
          signs: one.up.map((up, at) => (one.felt[at] ? Math.sign(up) : 0)) })) };
    }

    numbers() { // after stage()
      const push = this.pushes.find(([name]) => name === this.loss)[1];
      const told = { loss: this.losses[this.loss].name };
      if (push.problem) told.value = push.problem;
      else {
        const many = (sign) => push.up.filter((up, at) => push.felt[at] && sign * up > 0).length;
        Object.assign(told, { value: number(push.value, 3),
          "pulled up": `${many(1)} of ${this.items.length}`,
          "pushed down": `${many(-1)} of ${this.items.length}` }, this.compared());
      }
      const scores = this.scores.map(Math.fround);
      return Object.assign(told, { NDCG: number(ndcg(scores, this.relevance), 2),
        "Kendall's τ": number(kendall(scores, this.relevance, "b"), 2),
        "matches first": this.matchesFirst() ? "yes" : "no", steps: String(this.steps) });
    }
  }

  function lastOf(scores, first) { // the lowest of the first, without sorting all
    const best = new Float64Array(first).fill(-Infinity); // from low to high
    for (const score of scores) {
      if (score <= best[0]) continue;
      let at = 1;
      for (; score > best[at]; at++) best[at - 1] = best[at];
      best[at - 1] = score;
    }
    return best[0];
  }

  // A gallery: pictures and texts, and what two models score them

  class Gallery {
    constructor(data, bytes, codes) { // bytes: of base64; codes: of the relevance of all pairs
      const { relevance, ...rest } = data; // as it was sent
      Object.assign(this, rest, { ndcg: {} });
      this.names = Object.keys(data.models);
      this.count = { i2t: data.ids.length, t2i: data.texts.length };
      this.codes = codes;
      this.scores = this.names.map((name) => this.product(...data.models[name], bytes));
      for (const way in data.ndcg) // of both models
        this.ndcg[way] = data.ndcg[way].map((one) => new Float64Array(bytes(one).buffer));
      this.own = data.ids.map(() => []); // texts of each picture
      data.owner.forEach((image, text) => this.own[image].push(text));
      this.first = this.own.map(([text]) => text);
      this.ranks = this.scores.map((scores) => this.ranksOf(scores));
    }

    product(images, texts, bytes) {
      const [a, b] = [images, texts].map((one) => new Int8Array(bytes(one.data).buffer));
      const size = images.size, scale = images.scale * texts.scale;
      const out = new Float64Array(this.count.i2t * this.count.t2i);
      for (let i = 0, at = 0; i < this.count.i2t; i++)
        for (let t = 0; t < this.count.t2i; t++, at++) {
          let sum = 0;
          for (let k = 0; k < size; k++) sum += a[i * size + k] * b[t * size + k];
          out[at] = sum * scale;
        }
      return out;
    }

    pair(way, query, other) {
      const [image, text] = way === "i2t" ? [query, other] : [other, query];
      return image * this.count.t2i + text;
    }
    matches(way, query) { return way === "t2i" ? [this.owner[query]] : this.own[query]; }
    line(model, way, query) { // of scores: the row of a picture, or the column of a text
      const table = this.scores[model], texts = this.count.t2i;
      if (way === "i2t") return table.subarray(query * texts, (query + 1) * texts);
      const column = new Float64Array(this.count.i2t);
      for (let image = 0; image < column.length; image++)
        column[image] = table[image * texts + query];
      return column;
    }
    relevance(way, query, other) { return this.levels[this.codes[this.pair(way, query, other)]]; }
    colour(way, query, other) { return this.colours[this.codes[this.pair(way, query, other)]]; }

    ranksOf(scores) { // of the first match of every query; equal scores count against it
      const [images, texts] = [this.count.i2t, this.count.t2i];
      const own = this.owner.map((image, text) => scores[image * texts + text]);
      const best = new Float64Array(images).fill(-Infinity);
      this.owner.forEach((image, text) => { best[image] = Math.max(best[image], own[text]); });
      const ranks = { i2t: new Int32Array(images).fill(1), t2i: new Int32Array(texts).fill(1) };
      for (let i = 0, at = 0; i < images; i++) for (let t = 0; t < texts; t++, at++)
        if (this.owner[t] !== i) {
          ranks.i2t[i] += scores[at] >= best[i];
          ranks.t2i[t] += scores[at] >= own[t];
        }
      return ranks;
    }

    rank(line, match, item) { // matches come last among equal scores
      let rank = 1;
      for (let other = 0; other < line.length; other++)
        if (line[other] >= line[item]) rank += line[other] > line[item]
          || (match.has(other) - match.has(item) || other - item) < 0;
      return rank;
    }

    gainsOf(way, measure) {
      const of = (model) => (measure === "rank" ? this.ranks[model][way] : this.ndcg[way][model]);
      const [a, b] = [of(0), of(1)];
      return Array.from(a, (one, at) => (measure === "rank" ? one - b[at] : b[at] - one));
    }
  }

  // As textwrap.shorten: whole words, at most so many letters with the dots; a hyphen ends a word.
  function shorten(text, letters) {
    const whole = text.split(/\s+/).filter(Boolean).join(" ");
    if (whole.length <= letters) return whole;
    let kept = "";
    for (const word of whole.split(/(?<= )|(?<=[a-z]{2}-)(?=[a-z]{2})/i)) {
      if ((kept + word).trimEnd().length + 2 > letters) break;
      kept += word;
    }
    return kept ? `${kept.trimEnd()} …` : "…";
  }

  // Who moved?

  const MEASURES = { rank: "rank of the first match", ndcg: "NDCG" };
  const LETTERS = { i2t: 46, t2i: 38 }, FAR = 40;
  const ASKS = { i2t: ["picture", "texts"], t2i: ["text", "pictures"] };
  const upper = (word) => word[0].toUpperCase() + word.slice(1);

  class WhoMoved extends Explorer {
    constructor(gallery, picture = () => null) { // picture: image -> its address
      super("Who moved?");
      Object.assign(this, { gallery, picture, way: "i2t", sort: "gain", measure: "rank" });
      const name = gallery.names[1];
      this.sorts = { gain: `largest gain of ${name}`, harm: `largest harm of ${name}`,
        order: "their number" };
      this.choose({});
    }

    choose(changed) {
      Object.assign(this, changed, { place: 0 });
      const gains = this.gains = this.gallery.gainsOf(this.way, this.measure);
      const sign = { gain: -1, harm: 1, order: 0 }[this.sort];
      this.order = range(gains.length).sort((a, b) => sign * (gains[a] - gains[b]) || a - b);
    }

    get query() { return this.order[this.place]; }

    found() {
      const { gallery, way, query } = this, match = new Set(gallery.matches(way, query));
      const lines = [0, 1].map((model) => gallery.line(model, way, query));
      const least = lines.map((line) => lastOf(line, gallery.top));
      const near = [], [a, b] = lines;
      for (let item = 0; item < a.length; item++)
        if (a[item] >= least[0] || b[item] >= least[1] || match.has(item))
          near.push({ item, match: match.has(item), ranks: lines.map((line) =>
            gallery.rank(line, match, item)), scores: [a[item], b[item]] });
      const best = [0, 1].map((side) => Math.min(...near.filter((one) => one.match)
        .map((one) => one.ranks[side])));
      return near.filter(({ match: own, ranks }) => ranks.some((rank, side) =>
        rank <= gallery.top || (own && rank === best[side])))
        .sort((a, b) => a.ranks[0] - b.ranks[0])
        .map((one) => ({ ...one, relevance: gallery.relevance(way, query, one.item),
          text: gallery.texts[way === "i2t" ? one.item : gallery.first[one.item]],
          colour: gallery.colour(way, query, one.item) }));
    }

    controls() {
      const count = this.order.length;
      const ways = Object.fromEntries(Object.entries(ASKS).map(([way, [asks, wanted]]) =>
        [way, `${asks}s ask for ${wanted}`]));
      return [choice("direction", "Who asks", (way) => this.choose({ way }), this.way, ways),
        choice("sort", "Queries by", (sort) => this.choose({ sort }), this.sort, this.sorts),
        choice("measure", "Measured by", (measure) => this.choose({ measure }), this.measure,
          MEASURES),
        ...browse("query", "Place in this order", (place) => { this.place = place; }, this.place,
          count),
        numberLine("query", "Query", (query) => { this.place = this.order.indexOf(query); },
          this.query, count)];
    }

    words() {
      const { gallery, way, query } = this;
      return `${upper(ASKS[way][0])} ${long(query + 1)}: “`
        + `${gallery.texts[way === "i2t" ? gallery.first[query] : query]}”`;
    }

    stage() {
      const { gallery, way } = this, found = this.shown = this.found();
      const right = range(found.length).sort((a, b) => found[a].ranks[1] - found[b].ranks[1]);
      return { names: gallery.names, top: gallery.top, poll: 0, counted: null,
        query: { words: this.words(),
          picture: way === "i2t" ? this.picture(this.query) : null },
        scale: { label: "relevance", ends: [number(gallery.low, 2), number(1, 2)],
          colours: gallery.scale },
        label: `First ${ASKS[way][1]}: ${gallery.names[0]} left, ${gallery.names[1]} right`,
        results: found.map((one, at) => ({ key: one.item, match: one.match, colour: one.colour,
          text: shorten(one.text, Math.min(...one.ranks) > gallery.top ? FAR : LETTERS[way]),
          says: this.describe(one), ranks: one.ranks, rows: [at, right.indexOf(at)],
          beyond: one.ranks.map((rank) => rank > gallery.top),
          picture: way === "t2i" ? this.picture(one.item) : null })) };
    }

    describe(one) {
      const sides = this.gallery.names.map((name, side) =>
        `${name}: rank ${long(one.ranks[side])}, score ${number(one.scores[side], 3)}`);
      return `“${one.text}”: ${one.match ? "match" : "no match"}, relevance `
        + `${round(one.relevance, 2)}; ${sides.join("; ")}`;
    }

    numbers() { // after stage()
      const { gallery, way, query, measure, shown: found } = this;
      const { gains } = this, told = { query: this.words() };
      gallery.names.forEach((name, side) => {
        told[`rank of the first match, ${name}`] = long(gallery.ranks[side][way][query]);
        told[`NDCG, ${name}`] = round(gallery.ndcg[way][side][query], 3);
      });
      const top = Math.min(gallery.top, Math.max(...found.map((one) => one.ranks[0])));
      told[`in both first ${top}`] = String(found.filter((one) =>
        Math.max(...one.ranks) <= gallery.top).length);
      const by = `by ${MEASURES[measure]}`, of = ` of ${long(gains.length)}`;
      const many = (sign) => long(gains.filter((gain) => sign * gain > 0).length) + of;
      told[`${gallery.names[1]} better ${by}`] = many(1);
      told[`${gallery.names[1]} worse ${by}`] = many(-1);
      return told;
    }
  }

  // Search: a text or a picture asks both models

  const WAYS = { t2i: "a sentence asks for pictures", i2t: "a picture asks for sentences" };
  const SHOWS = { best: "best", negatives: "hardest negatives" };
  const ORDERS = { plain: "in the order of the split", failures: "failures first",
    apart: "largest disagreement first" };
  const SHOWN = 9;

  class Search extends Explorer {
    constructor(gallery, picture = () => null) {
      super("Search");
      Object.assign(this, { gallery, picture, way: "t2i", order: "plain", show: "best", place: 0,
        written: "", events: { take: ({ index }) => this.ask(this.way === "t2i" ? "i2t" : "t2i",
          index) } });
    }

    queries() {
      const [a, b] = this.gallery.ranks.map((ranks) => ranks[this.way]);
      const apart = (at) => Math.abs(Math.log(a[at] / b[at]));
      return range(a.length).sort((p, q) => (this.order === "failures" ? a[q] - a[p]
        : this.order === "apart" ? apart(q) - apart(p) : 0) || p - q);
    }
    get query() { return this.queries()[this.place]; }
    ask(way, query) { this.way = way; this.place = this.queries().indexOf(query); }

    write(words) { // the next text that has all these words
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean), { texts } = this.gallery;
      const from = this.way === "t2i" && words === this.written ? this.query + 1 : 0;
      const has = (text) => wanted.every((word) => texts[text].toLowerCase().includes(word));
      const order = range(texts.length).map((at) => (at + from) % texts.length);
      const found = order.find(has);
      if (found === undefined) throw Error(`no text of the ${long(texts.length)} has all of these `
        + `words: ${words}; take fewer, such as "red tree"`);
      this.written = words;
      this.ask("t2i", found);
    }

    controls() {
      return [choice("way", "Direction", (way) => { this.way = way; this.place = 0; }, this.way,
        WAYS),
      { kind: "text", name: "write", label: "A text with the words", value: this.written,
        letters: 24, hint: "red tree, then Enter", act: (words) => this.write(words) },
      choice("sort", "Queries", (order) => { this.order = order; this.place = 0; }, this.order,
        ORDERS),
      ...browse("query", "Query", (place) => { this.place = place; }, this.place,
        this.gallery.count[this.way]),
      choice("switch", "Show", (show) => { this.show = show; }, this.show, SHOWS)];
    }

    words() {
      return this.way === "t2i" ? this.gallery.texts[this.query] : this.gallery.ids[this.query];
    }

    stage() {
      const { gallery, way, query } = this, match = new Set(gallery.matches(way, query));
      const sides = gallery.names.map((name, model) => {
        const line = gallery.line(model, way, query);
        const order = range(line.length).sort((a, b) => line[b] - line[a] || a - b);
        const hits = order.map((index, at) => ({ index, rank: at + 1 }))
          .filter(({ index }) => this.show === "best" || !match.has(index)).slice(0, SHOWN);
        return { name, match: order.findIndex((index) => match.has(index)) + 1,
          hits: hits.map(({ index, rank }) => ({ rank, index, match: match.has(index), hub: false,
            score: Number(line[index].toFixed(4)),
            id: way === "t2i" ? gallery.ids[index] : `text ${index + 1}`,
            text: gallery.texts[way === "t2i" ? gallery.first[index] : index],
            relevance: gallery.relevance(way, query, index),
            picture: way === "t2i" ? this.picture(index) : null })) };
      });
      this.sides = sides;
      return { query: { text: this.words(),
        picture: way === "i2t" ? this.picture(query) : null }, sides };
    }

    numbers() { // after stage()
      return Object.fromEntries([["query", this.words()], ...this.sides.map((side) =>
        [`rank of the match, ${side.name}`, long(side.match)])]);
    }
  }

  // You are the judge

  const AXIS = "Kendall's τ-c", YOU = "you";

  function interval(tau, pairs) { // of about 95 %, with the variance of Fieller and others
    const half = 1.959964 * Math.sqrt(0.437 / (pairs - 4)), most = 1 - 2 / (pairs * (pairs - 1));
    const middle = Math.atanh(Math.min(most, Math.max(-most, tau)));
    return [Math.min(Math.tanh(middle - half), tau), Math.max(Math.tanh(middle + half), tau)];
  }

  class Judge extends Explorer {
    constructor(data) {
      super("You are the judge");
      Object.assign(this, { data, place: 0, given: new Map(), opened: new Set(),
        events: { rate: (rated) => this.rate(rated) } });
    }

    rate({ grade, pair }) {
      const place = pair - 1, count = this.data.texts.length;
      if (this.opened.has(place)) throw Error(`You have seen the grade by ${this.data.judges}: your `
        + "rating stays.");
      const fresh = !this.given.has(place);
      this.given.set(place, grade);
      if (fresh) this.place = range(count - 1).map((n) => (place + n + 1) % count)
        .find((one) => !this.given.has(one)) ?? place;
    }

    open() {
      if (!this.given.has(this.place)) throw Error("Rate the pair first: a grade that you know would "
        + "sway yours.");
      this.opened.add(this.place);
    }

    step(by) {
      const to = this.place + by;
      if (to < 0 || to >= this.data.texts.length)
        throw Error("there is no pair beyond the first and the last");
      this.place = to;
    }

    get compared() {
      return this.given.size >= this.data.least ? [...this.given.keys()].sort((a, b) => a - b)
        : range(this.data.texts.length);
    }

    agreements() {
      const { data } = this, pairs = this.compared, found = [], equal = [];
      const of = (name, kind, values, columns) => {
        const samples = pairs.flatMap((place, at) => columns
          .filter((column) => data.ratings[place][column] !== null)
          .map((column) => [values[at], data.ratings[place][column]]));
        const [ours, theirs] = [0, 1].map((side) => samples.map((one) => one[side]));
        if (new Set(values).size < 2 || new Set(theirs).size < 2) return equal.push(name);
        const value = kendall(ours, theirs, "c"), [low, high] = interval(value, pairs.length);
        return found.push({ name, kind, value, low, high, says: `${number(value, 2)} [${number(low, 2)}, `
          + `${number(high, 2)}]` });
      };
      const all = range(data.raters.length);
      if (this.given.size >= data.least)
        of(YOU, YOU, pairs.map((place) => this.given.get(place)), all);
      for (const [name, scores] of Object.entries(data.scores))
        of(name, "computed", pairs.map((place) => scores[place]), all);
      return [found.sort((a, b) => b.value - a.value), equal];
    }

    others() {
      if (!this.opened.has(this.place)) return "";
      return [[YOU[0].toUpperCase() + YOU.slice(1), this.given.get(this.place)],
        ...this.data.raters.map((name, at) => [name, this.data.ratings[this.place][at]])]
        .filter(([, grade]) => grade !== null).map(([name, grade]) => `${name}: ${grade}`)
        .join(", ");
    }

    controls() {
      return [button("back", "Back", () => this.step(-1)),
        button("forward", "Forward", () => this.step(1)),
        button("open", `Show the grade by ${this.data.judges}`, () => this.open())];
    }

    stage() {
      const { data, place } = this, waits = Math.max(data.least - this.given.size, 0);
      return { place: place + 1, count: data.texts.length, text: data.texts[place],
        picture: data.pictures[place], rated: this.given.size, others: this.others(),
        grades: data.grades.map(([grade, words]) => ({ grade, words,
          chosen: this.given.get(place) === grade })),
        fixed: this.opened.has(place), waits, axis: AXIS, judges: data.judges,
        agreements: waits ? [] : this.agreements()[0] };
    }

    numbers() {
      const { data } = this, told = { rated: `${this.given.size} of ${data.texts.length} pairs`,
        "compared with": data.judges };
      const [found, equal] = this.agreements();
      for (const one of found) told[`τ-c, ${one.name}`] = one.says;
      for (const name of equal) told[`τ-c, ${name}`] = "not defined";
      return told;
    }
  }

  // Watch it learn

  class Learning extends Explorer {
    constructor(data) {
      super("Watch it learn");
      Object.assign(this, { data, step: 0, playing: false, events: { poll: () => this.next() } });
    }

    get last() { return this.data.losses.length - 1; }
    next() {
      if (!this.playing) return;
      this.step = Math.min(this.step + 1, this.last);
      this.playing = this.step < this.last;
    }

    controls() {
      return [slider("step", "Step", (step) => { this.step = step; this.playing = false; },
        this.step, 0, this.last, 1, `${this.step} of ${this.last}`),
      button("play", this.playing ? "Stop" : "Play", () => {
        if (!this.playing && this.step === this.last) this.step = 0;
        this.playing = !this.playing;
      })];
    }

    stage() {
      const { data, step } = this;
      return { step, losses: data.losses, images: data.images[step], texts: data.texts[step],
        words: data.words, pictures: data.pictures, all: data, poll: this.playing ? 120 : 0 };
    }

    numbers() {
      const { data, step } = this;
      return { loss: number(data.losses[step], 3),
        "pictures whose own text is the nearest": `${data.first[step]} of ${data.words.length}` };
    }
  }

  return { PushPull, Gallery, WhoMoved, Search, Judge, Learning, ndcg, kendall, shorten };
})();

if (typeof module !== "undefined") module.exports = ITR_EXPLORERS;
