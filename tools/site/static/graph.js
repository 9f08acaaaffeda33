// Computes losses and their gradients from graphs that tools/site/graphs.py wrote. An array is
// { s: shape, d: typed array }: its type is that of the arithmetic, and rounds as torch does.
"use strict";

const ITR_GRAPH = (() => {
  const KINDS = { f: Float32Array, d: Float64Array, i: Int32Array, b: Uint8Array };
  const size = (shape) => shape.reduce((a, b) => a * b, 1);
  const array = (Kind, s, d) => ({ s, d: d instanceof Kind ? d : Kind.from(d) });
  const isArray = (x) => x !== null && typeof x === "object" && "d" in x;
  const scalar = (Kind, value) => array(Kind, [], [value]);
  const place = (dim, rank) => (dim < 0 ? dim + rank : dim);

  function stridesOf(s) {
    const steps = new Array(s.length);
    for (let at = s.length - 1, step = 1; at >= 0; step *= s[at--]) steps[at] = step;
    return steps;
  }

  // The places in an array of shape `from` of all elements of shape `to`.
  const known = new Map();
  function spread(from, to) {
    const key = `${from}|${to}`;
    if (known.has(key)) return known.get(key);
    const steps = stridesOf(from), wide = stridesOf(to), off = to.length - from.length;
    const places = new Int32Array(size(to));
    for (let at = 0; at < places.length; at++)
      for (let dim = off; dim < to.length; dim++)
        if (from[dim - off] !== 1)
          places[at] += (Math.floor(at / wide[dim]) % to[dim]) * steps[dim - off];
    known.set(key, places);
    return places;
  }

  function common(a, b) {
    const long = a.length > b.length ? a : b, short = long === a ? b : a;
    return long.map((n, at) => {
      const other = short[at - long.length + short.length] ?? 1;
      return n === 1 ? other : n;
    });
  }

  const same = (a, b) => a.length === b.length && a.every((n, at) => n === b[at]);
  const as = (Kind, x) => (!isArray(x) ? scalar(Kind, Number(x))
    : x.d instanceof Kind ? x : array(Kind, x.s, x.d));
  const expand = (x, s) => {
    if (same(x.s, s)) return x;
    const d = new x.d.constructor(size(s)), from = spread(x.s, s);
    for (let at = 0; at < d.length; at++) d[at] = x.d[from[at]];
    return { s, d };
  };

  // Both are rounded to the kind of the arithmetic first; what compares gives 0 or 1.
  const pair = (f, Out = null) => (Kind, a, b) => {
    a = as(Kind, a);
    b = as(Kind, b);
    const s = same(a.s, b.s) ? a.s : common(a.s, b.s), d = new (Out ?? Kind)(size(s));
    if (s === a.s && same(s, b.s)) {
      for (let at = 0; at < d.length; at++) d[at] = f(a.d[at], b.d[at]);
      return { s, d };
    }
    const p = spread(a.s, s), q = spread(b.s, s);
    for (let at = 0; at < d.length; at++) d[at] = f(a.d[p[at]], b.d[q[at]]);
    return { s, d };
  };
  const compare = (f) => pair(f, Uint8Array);
  const each = (f) => (Kind, x) => {
    const d = new Kind(x.d.length);
    for (let at = 0; at < d.length; at++) d[at] = f(x.d[at]);
    return { s: x.s, d };
  };

  // Every line along a dimension: f(line) gives lines of other lengths, one for each of the results.
  function lines(x, dim, Kinds, f) {
    dim = place(dim, x.s.length);
    const long = x.s[dim] ?? 1, inner = size(x.s.slice(dim + 1)), outer = size(x.s.slice(0, dim));
    const line = new Array(long);
    let out = null;
    for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) {
      for (let at = 0; at < long; at++) line[at] = x.d[(o * long + at) * inner + i];
      const made = f(line, o * inner + i);
      out ??= made.map((one, n) => ({ s: x.s.map((k, at) => (at === dim ? one.length : k)),
        d: new Kinds[n](outer * inner * one.length) }));
      made.forEach((one, n) => {
        for (let at = 0; at < one.length; at++)
          out[n].d[(o * one.length + at) * inner + i] = one[at];
      });
    }
    return out;
  }
  const line1 = (Kind, x, dim, f) => lines(x, dim, [Kind], (line) => [f(line)])[0];

  function reduced(Kind, x, dims, keep, f) {
    const all = (dims?.length ? dims : x.s.map((_, at) => at)).map((dim) => place(dim, x.s.length));
    let out = x;
    for (const dim of all) out = line1(Kind, out, dim, (line) => [f(line)]);
    return keep ? out : { s: x.s.filter((_, at) => !all.includes(at)), d: out.d };
  }
  const total = (line) => line.reduce((a, b) => a + b, 0);
  const dimsOf = (dim) => (dim === undefined || dim === null ? [] : [dim].flat());
  const count = (x, dims) => size(dims.length ? dims.map((k) => x.s[place(k, x.s.length)]) : x.s);

  // NaN is the largest, as torch sorts it.
  const above = (a, b) => (Number.isNaN(a) ? !Number.isNaN(b) : a > b);
  const order = (line, falling) => line.map((_, at) => at).sort((p, q) => {
    const [a, b] = falling ? [line[p], line[q]] : [line[q], line[p]];
    return above(a, b) ? -1 : above(b, a) ? 1 : p - q;
  });

  // Which of equal values are among the k largest is settled as torch settles it on a CPU, by the
  // std::nth_element and std::sort of libstdc++: equal scores have different gradients.
  function largest(line, k) {
    if (k * 64 <= line.length) throw Error("topk: a list of 64 k items or more is sorted otherwise");
    const at = line.map((_, n) => n), ahead = (p, q) => above(line[p], line[q]);
    const swap = (p, q) => { [at[p], at[q]] = [at[q], at[p]]; };
    const insert = (first, last) => {
      for (let i = first + 1; i < last; i++) {
        const one = at[i];
        let j = i;
        for (; j > first && ahead(one, at[j - 1]); j--) at[j] = at[j - 1];
        at[j] = one;
      }
    };
    let first = 0, last = at.length;
    const nth = k - 1;
    let depth = 2 * Math.floor(Math.log2(last));
    while (last - first > 3) {
      if (depth-- === 0) throw Error("topk: this order of scores is not supported");
      const [a, b, c] = [first + 1, first + ((last - first) >> 1), last - 1];
      const less = (p, q) => ahead(at[p], at[q]);
      swap(first, less(a, b) ? (less(b, c) ? b : less(a, c) ? c : a)
        : less(a, c) ? a : less(b, c) ? c : b);
      let low = first + 1, high = last;
      for (;;) {
        while (ahead(at[low], at[first])) low++;
        high--;
        while (ahead(at[first], at[high])) high--;
        if (low >= high) break;
        swap(low++, high);
      }
      if (low <= nth) first = low; else last = low;
    }
    insert(first, last);
    insert(0, k - 1);
    return at.slice(0, k);
  }

  const running = (f) => (Kind, x, dim) => line1(Kind, x, dim, (line) => {
    let sum;
    return line.map((value, at) => (sum = at ? f(sum, value) : value));
  });
  const runningBest = (better) => (Kind, x, dim) => lines(x, dim, [Kind, Int32Array], (line) => {
    let best = 0;
    const at = line.map((value, n) => (better(value, line[best]) ? (best = n) : best));
    return [at.map((n) => line[n]), at];
  });
  const softmax = (log) => (Kind, x, dim) => line1(Kind, x, dim, (line) => {
    const most = Math.max(...line), sum = total(line.map((v) => Math.exp(v - most)));
    return line.map((v) => (log ? v - most - Math.log(sum) : Math.exp(v - most) / sum));
  });

  const bound = (row, value, right) => {
    let at = 0;
    while (at < row.length && (right ? row[at] <= value : row[at] < value)) at++;
    return at;
  };

  // Calls f(place in x, place in index) for all of an index along a dimension.
  function indexed(x, dim, index, f) {
    dim = place(dim, x.s.length);
    const steps = stridesOf(x.s), own = stridesOf(index.s);
    for (let at = 0; at < index.d.length; at++) {
      let to = 0;
      for (let k = 0; k < index.s.length; k++)
        to += (k === dim ? index.d[at] : Math.floor(at / own[k]) % index.s[k]) * steps[k];
      f(to, at);
    }
  }
  const copy = (Kind, x) => ({ s: x.s, d: Kind.from(x.d) });
  const scattered = (f) => (Kind, x, dim, index, source, how) => {
    const out = copy(Kind, x), from = as(Kind, source);
    const places = same(from.s, index.s) ? null : spread(from.s.length ? index.s : [], index.s);
    const wide = stridesOf(from.s), own = stridesOf(index.s);
    indexed(out, dim, index, (to, at) => {
      let where = 0; // a source may be longer than its index
      if (!places) where = at;
      else if (from.s.length)
        for (let k = 0; k < index.s.length; k++)
          where += (Math.floor(at / own[k]) % index.s[k]) * wide[k];
      out.d[to] = f(out.d[to], from.d[where], how);
    });
    return out;
  };

  const between = (x, dim, start, end) => {
    const long = x.s[dim], fit = (n) => Math.min(Math.max(n < 0 ? n + long : n, 0), long);
    return [fit(start ?? 0), fit(end ?? long)];
  };
  const slice = (Kind, x, dim = 0, start = 0, end = null, step = 1) => {
    dim = place(dim, x.s.length);
    const [from, to] = between(x, dim, start, end);
    return line1(Kind, x, dim, (line) => line.slice(from, to).filter((_, at) => at % step === 0));
  };
  const without = (s, dim) => s.filter((_, at) => at !== dim);

  function diagonalPlaces(x, offset, dim1, dim2) { // of the elements, and the shape without
    const [p, q] = [place(dim1, x.s.length), place(dim2, x.s.length)], steps = stridesOf(x.s);
    const rest = x.s.map((_, at) => at).filter((at) => at !== p && at !== q);
    const s = [...rest.map((at) => x.s[at]), Math.min(x.s[p], x.s[q])], wide = stridesOf(s);
    if (offset) throw Error("diagonal: an offset is not supported");
    const places = Array.from({ length: size(s) }, (_, at) => s.reduce((sum, n, k) => sum
      + (Math.floor(at / wide[k]) % n)
        * (k < rest.length ? steps[rest[k]] : steps[p] + steps[q]), 0));
    return { s, places };
  }

  const O = {
    input: null, output: null,
    add: (Kind, a, b, alpha = 1) => pair((x, y) => x + alpha * y)(Kind, a, b),
    sub: (Kind, a, b, alpha = 1) => pair((x, y) => x - alpha * y)(Kind, a, b),
    mul: pair((a, b) => a * b),
    div: (Kind, a, b, mode = null) => pair((x, y) => (mode === "floor" ? Math.floor(x / y)
      : mode === "trunc" ? Math.trunc(x / y) : x / y))(Kind, a, b),
    minimum: pair(Math.min), maximum: pair(Math.max), pow: pair((a, b) => a ** b),
    le: compare((a, b) => a <= b), lt: compare((a, b) => a < b), ge: compare((a, b) => a >= b),
    gt: compare((a, b) => a > b), eq: compare((a, b) => a === b), ne: compare((a, b) => a !== b),
    logical_and: pair((a, b) => (a && b ? 1 : 0)), logical_or: pair((a, b) => (a || b ? 1 : 0)),
    logical_not: each((a) => (a ? 0 : 1)),
    bitwise_and: pair((a, b) => a & b), bitwise_or: pair((a, b) => a | b),
    bitwise_not: (Kind, x) => each(Kind === Uint8Array ? (v) => (v ? 0 : 1) : (v) => ~v)(Kind, x),
    neg: each((v) => -v), exp: each(Math.exp), log: each(Math.log), log2: each(Math.log2),
    log1p: each(Math.log1p), expm1: each(Math.expm1), abs: each(Math.abs), sqrt: each(Math.sqrt),
    rsqrt: each((v) => 1 / Math.sqrt(v)), reciprocal: each((v) => 1 / v), tanh: each(Math.tanh),
    sigmoid: each((v) => 1 / (1 + Math.exp(-v))), sign: each(Math.sign),
    relu: each((v) => (v > 0 || Number.isNaN(v) ? v : 0)),
    isnan: each((v) => (Number.isNaN(v) ? 1 : 0)),
    clamp: (Kind, x, low, high) => each((v) => {
      if (low !== null && low !== undefined && v < low) v = low;
      return high !== null && high !== undefined && v > high ? high : v;
    })(Kind, x),
    where: (Kind, test, a, b) => {
      a = as(Kind, a);
      b = as(Kind, b);
      const s = common(common(test.s, a.s), b.s), d = new Kind(size(s));
      const [t, p, q] = [test, a, b].map((one) => spread(one.s, s));
      for (let at = 0; at < d.length; at++) d[at] = test.d[t[at]] ? a.d[p[at]] : b.d[q[at]];
      return { s, d };
    },
    to: copy, full: (Kind, s, value) => array(Kind, s, new Kind(size(s)).fill(value)),
    full_like: (Kind, x, value) => array(Kind, x.s, new Kind(x.d.length).fill(value)),
    scalar_tensor: scalar, empty_permuted: (Kind, s) => array(Kind, s, new Kind(size(s))),
    arange: (Kind, start, end, step = 1) => {
      const d = Kind.from({ length: Math.ceil((end - start) / step) }, (_, at) => start + at * step);
      return { s: [d.length], d };
    },
    sum: (Kind, x, dims, keep) => reduced(Kind, x, dimsOf(dims), keep, total),
    mean: (Kind, x, dims, keep) => {
      const over = dimsOf(dims), n = count(x, over);
      return each((v) => v / n)(Kind, reduced(Kind, x, over, keep, total));
    },
    amax: (Kind, x, dims, keep) => reduced(Kind, x, dims, keep, (line) => Math.max(...line)),
    amin: (Kind, x, dims, keep) => reduced(Kind, x, dims, keep, (line) => Math.min(...line)),
    any: (Kind, x, dims, keep) =>
      reduced(Kind, x, dimsOf(dims), keep, (line) => (line.some(Boolean) ? 1 : 0)),
    cumsum: running((a, b) => a + b),
    cummax: runningBest((a, b) => a >= b), cummin: runningBest((a, b) => a <= b),
    _softmax: softmax(false), _log_softmax: softmax(true),
    expand: (Kind, x, s) => expand(x, s.map((n, at) => (n === -1 ? x.s[at - s.length + x.s.length]
      : n))),
    view: (Kind, x, s) => {
      const rest = x.d.length / -size(s);
      return { s: s.map((n) => (n === -1 ? rest : n)), d: x.d };
    },
    unsqueeze: (Kind, x, dim) => {
      const s = x.s.slice();
      s.splice(place(dim, s.length + 1), 0, 1);
      return { s, d: x.d };
    },
    squeeze: (Kind, x, dims) => {
      const out = dimsOf(dims).map((dim) => place(dim, x.s.length));
      return { s: x.s.filter((n, at) => n !== 1 || !out.includes(at)), d: x.d };
    },
    permute: (Kind, x, dims) => {
      const s = dims.map((dim) => x.s[place(dim, x.s.length)]), steps = stridesOf(x.s);
      const own = stridesOf(s), d = new Kind(x.d.length);
      for (let at = 0; at < d.length; at++) d[at] = x.d[dims.reduce((from, dim, k) => from
        + (Math.floor(at / own[k]) % s[k]) * steps[place(dim, s.length)], 0)];
      return { s, d };
    },
    slice, flip: (Kind, x, dims) => dims.reduce((out, dim) =>
      line1(Kind, out, dim, (line) => line.slice().reverse()), x),
    slice_scatter: (Kind, x, source, dim = 0, start = 0, end = null) => {
      dim = place(dim, x.s.length);
      const [from, to] = between(x, dim, start, end), index = { s: source.s,
        d: Int32Array.from(source.d, (_, at) => from
          + Math.floor(at / stridesOf(source.s)[dim]) % (to - from)) };
      return O.scatter(Kind, x, dim, index, source);
    },
    select: (Kind, x, dim, at) => {
      dim = place(dim, x.s.length);
      const n = place(at, x.s[dim]), out = slice(Kind, x, dim, n, n + 1);
      return { s: without(x.s, dim), d: out.d };
    },
    unbind: (Kind, x, dim = 0) => Array.from({ length: x.s[place(dim, x.s.length)] },
      (_, at) => O.select(Kind, x, dim, at)),
    split: (Kind, x, long, dim = 0) => {
      const all = x.s[place(dim, x.s.length)];
      return Array.from({ length: Math.ceil(all / long) },
        (_, n) => slice(Kind, x, dim, n * long, Math.min((n + 1) * long, all)));
    },
    split_with_sizes: (Kind, x, sizes, dim = 0) => {
      let from = 0;
      return sizes.map((n) => slice(Kind, x, dim, from, (from += n)));
    },
    cat: (Kind, parts, dim = 0) => {
      const at = place(dim, parts[0].s.length), s = parts[0].s.slice();
      s[at] = total(parts.map((one) => one.s[at]));
      const d = new Kind(size(s)), outer = size(s.slice(0, at)), inner = size(s.slice(at + 1));
      let begin = 0;
      for (const one of parts) {
        const long = one.s[at] * inner;
        for (let o = 0; o < outer; o++)
          d.set(one.d.subarray(o * long, (o + 1) * long), o * s[at] * inner + begin);
        begin += long;
      }
      return { s, d };
    },
    constant_pad_nd: (Kind, x, pad, value = 0) => {
      let out = x;
      const fill = (many) => Array(Math.max(many, 0)).fill(value); // less than none cuts
      for (let n = 0; n < pad.length / 2; n++) {
        const [before, after] = pad.slice(2 * n, 2 * n + 2);
        out = line1(Kind, out, x.s.length - 1 - n, (line) => [...fill(before),
          ...line.slice(Math.max(-before, 0), line.length - Math.max(-after, 0)), ...fill(after)]);
      }
      return out;
    },
    diagonal: (Kind, x, offset = 0, dim1 = 0, dim2 = 1) => {
      const { s, places } = diagonalPlaces(x, offset, dim1, dim2);
      return { s, d: Kind.from(places, (at) => x.d[at]) };
    },
    diagonal_scatter: (Kind, x, source, offset = 0, dim1 = 0, dim2 = 1) => {
      const out = copy(Kind, x);
      diagonalPlaces(x, offset, dim1, dim2).places.forEach((to, at) => { out.d[to] = source.d[at]; });
      return out;
    },
    mm: (Kind, a, b) => {
      const [n, k] = a.s, m = b.s[1], d = new Kind(n * m);
      for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) {
        let sum = 0;
        for (let q = 0; q < k; q++) sum += a.d[i * k + q] * b.d[q * m + j];
        d[i * m + j] = sum;
      }
      return { s: [n, m], d };
    },
    bmm: (Kind, a, b) => {
      const parts = O.unbind(Kind, a).map((one, at) =>
        O.unsqueeze(Kind, O.mm(Kind, one, O.select(Kind, b, 0, at)), 0));
      return O.cat(Kind, parts);
    },
    gather: (Kind, x, dim, index) => {
      const d = new Kind(index.d.length);
      indexed(x, dim, index, (from, at) => { d[at] = x.d[from]; });
      return { s: index.s, d };
    },
    scatter: scattered((_, value) => value), scatter_add: scattered((old, value) => old + value),
    scatter_reduce: scattered((old, value, how) => (how === "amax" ? Math.max(old, value)
      : how === "amin" ? Math.min(old, value) : old + value)),
    topk: (Kind, x, k, dim = -1) => lines(x, dim, [Kind, Int32Array], (line) => {
      const at = largest(line, k);
      return [at.map((n) => line[n]), at];
    }),
    sort: (Kind, x, ...how) => {
      const [dim, falling] = how.length && typeof how[0] === "boolean" ? how.slice(1) : how;
      return lines(x, dim ?? -1, [Kind, Int32Array], (line) => {
        const at = order(line, falling === true);
        return [at.map((n) => line[n]), at];
      });
    },
    searchsorted: (Kind, rows, values, int32, right, side) => {
      const long = rows.s[rows.s.length - 1], many = values.s[values.s.length - 1];
      const d = Int32Array.from(values.d, (value, at) => {
        const begin = rows.s.length > 1 ? Math.floor(at / many) * long : 0;
        return bound(rows.d.subarray(begin, begin + long), value, right || side === "right");
      });
      return { s: values.s, d };
    },
    bucketize: (Kind, values, edges, int32, right) => ({ s: values.s,
      d: Int32Array.from(values.d, (value) => bound(edges.d, value, right)) }),
    getitem: (Kind, parts, at) => parts[at],
  };

  const SPECIAL = { "~inf": Infinity, "~-inf": -Infinity, "~nan": NaN };

  // How an argument is read when the graph runs: a node, a list that holds one, or as it is.
  function reader(arg) {
    if (typeof arg === "string" && arg[0] === "#") {
      const at = Number(arg.slice(1));
      return (env) => env[at];
    }
    if (typeof arg === "string" && arg in SPECIAL) return () => SPECIAL[arg];
    if (Array.isArray(arg) && arg.some((one) => typeof one === "string")) {
      const parts = arg.map(reader);
      return (env) => parts.map((part) => part(env));
    }
    return () => arg;
  }

  // What does not depend on the first input, the scores, is computed again only if others change.
  function compile(nodes, operations) {
    const moves = [];
    const moving = (arg) => (Array.isArray(arg) ? arg.some(moving)
      : typeof arg === "string" && arg[0] === "#" && moves[Number(arg.slice(1))]);
    const steps = nodes.map(([operation, kind, ...args]) => {
      const name = operations[operation], run = O[name];
      if (run === undefined) throw Error(`graph.js has no operation ${name}`);
      moves.push(name === "input" ? moves.length === 0 : args.some(moving));
      return { name, run, Kind: KINDS[kind], args: args.map(reader) };
    });
    const env = new Array(steps.length);
    let last = null;
    return (inputs) => {
      const given = inputs[Symbol.iterator](), rest = inputs.slice(1).map((one) => one.d).join(";");
      const kept = rest === last;
      last = null; // an operation may throw: what is computed is kept when all is
      for (let at = 0; at < steps.length; at++) {
        const { name, run, Kind, args } = steps[at];
        if (name === "output") {
          last = rest;
          return args.map((arg) => arg(env));
        }
        if (kept && !moves[at] && name !== "input") continue;
        env[at] = run === null ? given.next().value : run(Kind, ...args.map((arg) => arg(env)));
      }
      return null;
    };
  }

  // Losses by name, each with push(scores, relevance, values): { value, gradient }, argument(slider,
  // values) and further(values): the inputs of its graph. Missing values are the default ones.
  function open(written) {
    const list = (values) => ({ s: [1, values.length], d: Float32Array.from(values) });
    const input = (value) => (Array.isArray(value) ? { s: [value.length],
      d: Float64Array.from(value) } : scalar(Float64Array, value));
    const opened = (told) => {
      const compiled = new Map(), slider = (name) => told.sliders.find(([one]) => one === name);
      const argument = (name, values) => values[name] ?? slider(name)[5];
      const choose = (values) => {
        const key = told.grid.map((name) => slider(name)[6].indexOf(argument(name, values))).join();
        if (!told.variants[key]) throw Error(`${told.name} has no graph for `
          + told.grid.map((name) => `${name} = ${argument(name, values)}`).join(", "));
        return [key, ...told.variants[key]];
      };
      const further = (values) => {
        const rest = choose(values)[3][Symbol.iterator]();
        return Object.fromEntries(told.inputs.map((name) => [name,
          told.direct.includes(name) ? argument(name, values) : rest.next().value]));
      };
      const push = (scores, relevance, values = {}) => {
        const [key, graph, patch] = choose(values);
        if (!compiled.has(key)) {
          const nodes = told.graphs[graph].map((node) => node.slice());
          for (const [node, at, value] of patch) nodes[node][at] = value;
          compiled.set(key, compile(nodes, written.operations));
        }
        const labels = told.scale === "cosine" ? relevance.map((one) => 2 * one - 1) : relevance;
        const [value, gradient] = compiled.get(key)([list(scores), list(labels),
          ...Object.values(further(values)).map(input)]);
        return { value: value.d[0], gradient: Array.from(gradient.d) };
      };
      return { ...told, argument, further, push };
    };
    return Object.fromEntries(Object.entries(written.losses).map(([name, told]) =>
      [name, told.why ? told : opened(told)]));
  }

  return { open, largest };
})();

if (typeof module !== "undefined") module.exports = ITR_GRAPH;
