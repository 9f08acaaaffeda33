// Checks a guess at an exercise without Python. Each place of a page holds what Python knows of its
// exercise: digests, not the answer; and what Python would say.
"use strict";

const ITR_CHECK = (() => {
  // SHA-256 of a text of ASCII, in hexadecimal digits: on a page without https a browser may have
  // no crypto.subtle. Its constants are parts of the roots of the first primes.
  const PRIMES = [2];
  for (let n = 3; PRIMES.length < 64; n += 2) if (PRIMES.every((one) => n % one)) PRIMES.push(n);
  const fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
  const ROOTS = PRIMES.map((one) => fraction(Math.cbrt(one)));
  const turned = (word, by) => (word >>> by) | (word << (32 - by));

  function sha256(text) {
    const words = new Int32Array(((text.length + 8) >> 6) * 16 + 16);
    [...`${text}\x80`].forEach((letter, at) => {
      words[at >> 2] |= letter.charCodeAt(0) << (24 - 8 * (at & 3));
    });
    words[words.length - 1] = 8 * text.length;
    const hash = Int32Array.from(PRIMES.slice(0, 8), (one) => fraction(Math.sqrt(one)));
    for (let block = 0; block < words.length; block += 16) {
      const w = words.slice(block, block + 16), state = [...hash];
      for (let n = 0; n < 64; n++) {
        const [a, b, c, d, e, f, g, h] = state, at = n & 15, x = w[(n + 1) & 15], y = w[(n + 14) & 15];
        const first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g))
          + ROOTS[n] + w[at];
        const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        w[at] += w[(n + 9) & 15] + (turned(x, 7) ^ turned(x, 18) ^ (x >>> 3))
          + (turned(y, 17) ^ turned(y, 19) ^ (y >>> 10));
        state.splice(0, 8, (first + second) | 0, a, b, c, (d + first) | 0, e, f, g);
      }
      state.forEach((one, at) => { hash[at] += one; });
    }
    return Array.from(hash, (one) => (one >>> 0).toString(16).padStart(8, "0")).join("");
  }

  // As Exercise.read: a letter, or the number of a bin; null if it is neither.
  function read({ choices, width, largest }, written) {
    if (choices) return written.length === 1 && choices.includes(written) ? written : null;
    const number = Number(written);
    return Math.abs(number) < largest ? Math.floor(number / width + 0.5) : null;
  }

  // As Exercise.judge: which sentence answers, and the sentence.
  function judge(exercise, text) {
    const written = text.trim().toLowerCase(), place = read(exercise, written);
    const matches = (one) => exercise.digests.includes(
      sha256(`itr_study ${exercise.name} ${one}`).slice(0, 16));
    const near = () => typeof place === "number" && (matches(place - 1) || matches(place + 1));
    const said = !written ? "absent" : place === null ? "other" : matches(place) ? "right"
      : near() ? "nearly" : "wrong";
    return [said, exercise.sentences[said].replace("{got}", () => `'${text.trim().slice(0, 38)}'`)];
  }

  function show(place) {
    const exercise = JSON.parse(place.dataset.exercise), id = `guess-${exercise.name}`;
    const form = document.createElement("form");
    form.innerHTML = `<label for="${id}"></label> <input id="${id}" type="text" size="8"
      autocomplete="off" autocapitalize="off" spellcheck="false"> <button>Check</button>
      <output for="${id}"></output>`;
    const [label, input, , output] = form.children;
    label.textContent = exercise.label;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      [output.className, output.textContent] = judge(exercise, input.value);
    });
    input.addEventListener("input", () => { output.textContent = output.className = ""; });
    place.replaceChildren(form);
  }

  if (typeof document !== "undefined")
    document.querySelectorAll("[data-exercise]").forEach(show);
  return { sha256, judge };
})();

if (typeof module !== "undefined") module.exports = ITR_CHECK;
