// Draws the timelines of a report. Vega-Lite draws what it is given; what is too much to draw is aggregated here first.
"use strict";

const MOST_RANGES = 3000; // ranges that are drawn one by one
const MOST_LABELED = 150; // ranges that are labeled
const LABEL = [80, 11]; // the width and height of a label, in pixels
const MOST_EDGED = 500; // ranges with an edge
const MOST_ROWS = 200; // rows of a table of changes
const MOST_MEMBERS = 20; // lanes
const COLUMNS = 160; // of a grid
const ROWS = 80;
const HEIGHT = 320; // of the picture of records, in pixels
const AFTER = 0.001; // ms after a line has ended, it is not known
const LATEST = 1000; // changes in the time that is shown first
const GOES_ON = -1; // the ends of spans without a change: at the end of the history,
const FORGOTTEN = -2; // as a new leader has not read it,
const UNKNOWN = -3; // and where the state is not known any more
const CROWDED = 20; // how many times what was in flight at once the shown offsets are, for them to be shown from the SPSO on
const element = (id) => document.getElementById(id);

let report, partition, views = {}, shown = [0, 1], chosen = {}, drawing = Promise.resolve(), pending = false;

// ---- the data

async function unpack() {
  const packed = Uint8Array.from(atob(JSON.parse(element("data").textContent)), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  report = JSON.parse(await new Response(stream).text());
}

function accumulated(differences) {
  const sums = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++) sums[i] = sum += differences[i];
  return sums;
}

/** Make absolute numbers of the columns of a share partition; times become milliseconds since 1970. */
function opened(packed) {
  if (packed.spans.last) return packed;
  const origin = packed.origin_us / 1000, spans = packed.spans;
  spans.first = accumulated(spans.first);
  spans.last = spans.first.map((first, i) => first + spans.size[i]);
  spans.begin = accumulated(spans.begin).map((us) => origin + us / 1000);
  spans.end = spans.begin.map((begin, i) => begin + spans.duration[i] / 1000);
  packed.points.at = accumulated(packed.points.at).map((us) => origin + us / 1000);
  packed.unknown = packed.unknown.map(([begin, end, reason]) => ({ begin: origin + begin / 1000, end: origin + end / 1000, reason }));
  packed.from = origin;
  packed.to = origin + Math.max(packed.duration_us / 1000, 1);
  return packed;
}

/** Yield the places of the spans that are within a time; those without duration count at their instant. */
function* within(from, to) {
  const { begin, end } = partition.spans;
  for (let i = 0; i < begin.length && begin[i] <= to; i++) if (end[i] >= from) yield i;
}

/** Return the points of a column that suffice to draw it; where it is not known there is one that is null. */
function thinned(name, from, to) {
  const { at, [name]: values } = partition.points, rows = [];
  for (let i = 0, stop; i < at.length && at[i] <= to; i = stop) {
    const isKnown = values[i] !== null;
    for (stop = i; stop < at.length && (values[stop] !== null) === isKnown;) stop++;
    const until = stop < at.length ? Math.min(at[stop], to) : to;
    if (!isKnown || until < from) continue;
    rows.push(...thinnedRun(values, i, stop, from, until));
    if (until < to) rows.push({ at: until + AFTER, value: null });
  }
  return rows;
}

/** Return the points from *i* to before *stop* that suffice to draw them: the first, least, greatest and last in each column. */
function thinnedRun(values, i, stop, from, to) {
  const { at } = partition.points, rows = [], width = (to - from) / (4 * COLUMNS);
  while (i < stop && at[i] <= to) {
    const edge = at[i] < from ? from : Math.max(from + (Math.floor((at[i] - from) / width) + 1) * width, at[i] + 1e-6);
    let least = i, most = i, end = i;
    for (; end < stop && at[end] < edge; end++) {
      if (values[end] < values[least]) least = end;
      if (values[end] > values[most]) most = end;
    }
    end = Math.max(end, i + 1);
    if (at[end - 1] < from) rows.push({ at: from, value: values[end - 1] }); // what was true when the shown time begins
    else for (const k of [...new Set([i, least, most, end - 1])].sort((a, b) => a - b)) rows.push({ at: at[k], value: values[k] });
    i = end;
  }
  if (rows.length && rows.at(-1).at < to) rows.push({ at: to, value: rows.at(-1).value });
  return rows;
}

// ---- words

function when(ms) {
  if (!partition.is_timed) return `event ${Math.round(ms / 1000)}`;
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString();
}

function duration(ms) {
  if (!partition.is_timed) return `${Math.round(ms / 1000)} events`;
  if (ms < 60000) return `${+(ms / 1000).toFixed(3)} s`;
  const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]], parts = [];
  for (const [size, unit] of units) {
    if (ms >= size) parts.push(`${Math.floor(ms / size)} ${unit}`);
    ms %= size;
  }
  return parts.slice(0, 2).join(" ");
}

const range = (i) => {
  const { first, last } = partition.spans;
  return first[i] === last[i] ? `${first[i]}` : `${first[i]}-${last[i]}`;
};
const member = (i) => partition.members[partition.spans.member[i]] ?? "";
const state = (i) => report.states[partition.spans.state[i]];
const whole = (number) => number.toLocaleString("en-US");

/**
 * Return the life of a record: its changes, each with the state that follows it; the last one may have none. The member
 * of a change is the one that has the record by it, or has had it until then.
 */
function life(offset) {
  const { first, last, begin, end, count, began, ended } = partition.spans, rows = [];
  let open = null;
  const finish = () => {
    if (open === null || ended[open] === GOES_ON) return;
    if (ended[open] === FORGOTTEN) rows.push({ at: end[open], what: "forgotten by a new leader", state: "", count: "", member: member(open) });
    if (ended[open] === UNKNOWN) rows.push({ at: end[open], what: "not known from here on", state: "", count: "", member: "" });
  };
  for (let i = 0; i < begin.length; i++) {
    if (first[i] > offset || last[i] < offset) continue;
    finish();
    const owner = member(i) || (open !== null && ended[open] === began[i] ? member(open) : "");
    rows.push({ at: begin[i], what: report.causes[began[i]], state: state(i), count: count[i], member: owner });
    open = i;
  }
  finish();
  if (open !== null && ended[open] >= 0) {
    rows.push({ at: end[open], what: report.causes[ended[open]], state: "no longer in flight", count: "", member: member(open) });
  }
  return rows;
}

// ---- tables

/** Fill a table; each cell has the head of its column, for narrow windows, in which it stands beside it. */
function fill(table, rows) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  table.tBodies[0].replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    for (const [i, value] of cells.entries()) {
      const cell = row.insertCell();
      cell.dataset.head = heads[i];
      cell.textContent = typeof value === "number" ? whole(value) : value;
      if (typeof value === "number") cell.className = "number";
    }
    return row;
  }));
}

function showLife() {
  const text = element("offset").value.trim(), section = element("life");
  section.hidden = text === "";
  if (section.hidden) return;
  const offset = Number(text), isNumber = /^[0-9]+$/.test(text), rows = isNumber ? life(offset) : [];
  section.querySelector("h3").textContent = `Record ${text}`;
  section.querySelector("p").textContent = !isNumber ? "An offset is a number, 0 or more."
    : `${rows.length ? "" : "Nothing in these pictures is about it. "}Why it is or is not deliverable:`;
  section.querySelector("code").textContent = isNumber ? `${report.command} --offset ${offset} ${partition.arguments}` : "";
  fill(section.querySelector("table"), rows.map((row, i) =>
    [when(row.at), i ? duration(row.at - rows[i - 1].at) : "", row.what, row.state, row.count, row.member]));
}

// ---- what is drawn

function offsetsOf(places, lines) {
  const { first, last } = partition.spans;
  let low = Infinity, high = -Infinity;
  for (const i of places) { low = Math.min(low, first[i]); high = Math.max(high, last[i] + 1); }
  for (const row of lines) if (row.line !== "log end" && row.offset !== null) { low = Math.min(low, row.offset); high = Math.max(high, row.offset + 1); }
  return low > high ? [0, 1] : [low, high];
}

function offsetLines(from, to) {
  return [["start", "SPSO"], ["end", "SPEO"], ["log_end", "log end"]].flatMap(([name, line]) =>
    thinned(name, from, to).map(({ at, value }) => ({ at, offset: name === "end" && value !== null ? value + 1 : value, line })));
}

/** Return what is drawn of a span; *pad* is half a pixel, or thin neighbors would let the background shine through. */
function single(i, edge, pad) {
  const { first, last, begin, end } = partition.spans, beyond = last[i] + 1;
  return { first: first[i], beyond, bottom: first[i] - pad, top: beyond + pad, begin: begin[i], end: end[i], state: state(i), edge };
}

/** Return whether a label fits into what is drawn of a span. */
function hasRoom(i, from, to, low, high) {
  const { first, last, begin, end } = partition.spans, time = Math.min(end[i], to) - Math.max(begin[i], from);
  return time * views.records.width() >= LABEL[0] * (to - from) && (last[i] - first[i] + 1) * HEIGHT >= LABEL[1] * (high - low);
}

/** Return the SPSO at a time; null if it is not known. */
function startAt(time) {
  const { at, start } = partition.points;
  let low = 0, high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] <= time) low = middle + 1; else high = middle;
  }
  return low ? start[low - 1] : null;
}

/**
 * Return the cells of a grid in which records are in flight, each in the state that most of its records have in its
 * middle. *base* is where the offsets of a column are counted from.
 */
function grid(places, from, to, low, high, base) {
  const { first, last, begin, end, state: numbers } = partition.spans;
  const width = (to - from) / COLUMNS, height = Math.max(1, Math.ceil((high - low) / ROWS));
  const counts = new Map(), bases = Array.from({ length: COLUMNS }, (_, column) => base(from + (column + 0.5) * width));
  for (const i of places) {
    const left = Math.max(0, Math.ceil((begin[i] - from) / width - 0.5));
    const right = Math.min(COLUMNS, Math.ceil((end[i] - from) / width - 0.5));
    for (let column = left; column < right; column++) {
      const least = first[i] - bases[column], most = last[i] - bases[column];
      for (let row = Math.max(0, Math.floor((least - low) / height)); low + row * height <= most; row++) {
        const bottom = low + row * height;
        const records = Math.min(most, bottom + height - 1) - Math.max(least, bottom) + 1;
        if (records <= 0) continue;
        const key = column * 100000 + row;
        let cell = counts.get(key);
        if (!cell) counts.set(key, cell = [0, 0, 0, 0, 0]);
        cell[numbers[i]] += records;
      }
    }
  }
  return [...counts].map(([key, cell]) => {
    const column = Math.floor(key / 100000), bottom = low + (key % 100000) * height;
    return { first: bottom, beyond: bottom + height, bottom, top: bottom + height, begin: from + column * width, end: from + (column + 1) * width,
      edge: 0, state: report.states[cell.indexOf(Math.max(...cell))], text: cell.map((n, k) => n ? `${report.states[k]}: ${whole(n)}` : "").filter(Boolean).join("\n") };
  });
}

function tallied(places, from, to) {
  const { member: owners, size, count, begin, end, ended, began } = partition.spans;
  const acquired = report.causes.indexOf("acquired"), members = new Map(), deliveries = new Map();
  for (const i of places) {
    if (owners[i] < 0) continue;
    let tally = members.get(owners[i]);
    if (!tally) members.set(owners[i], tally = { spans: [], acquired: 0, outcomes: new Map() });
    tally.spans.push(i);
    if (began[i] === acquired && begin[i] >= from) {
      tally.acquired += size[i] + 1;
      deliveries.set(count[i], (deliveries.get(count[i]) ?? 0) + size[i] + 1);
    }
    if (ended[i] >= 0 && end[i] <= to) {
      const outcome = report.outcomes[ended[i]];
      tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + size[i] + 1);
    }
  }
  const ordered = [...members].sort((a, b) => b[1].acquired - a[1].acquired || a[0] - b[0]);
  return { members: ordered, deliveries: [...deliveries].sort((a, b) => a[0] - b[0]) };
}

/** Return the greatest number of offsets that were in flight at once. */
function mostInFlight(from, to) {
  const { at, start, end } = partition.points;
  let most = 1;
  for (let i = 0; i < at.length && at[i] <= to; i++) {
    if ((i + 1 === at.length || at[i + 1] >= from) && start[i] !== null) most = Math.max(most, end[i] - start[i] + 1);
  }
  return most;
}

const outcome = (i) => partition.spans.ended[i] < 0 ? "held" : report.outcomes[partition.spans.ended[i]];

/** Return the bars and marks of the lane of a member; where there is too much to draw, a bar for each column of the picture. */
function lane(name, places, from, to) {
  const { begin, end, size } = partition.spans, bars = [], marks = [];
  if (places.length > MOST_RANGES / MOST_MEMBERS) return [columns(name, places, from, to), []];
  for (const i of places) {
    const what = outcome(i), text = `${name}, ${range(i)}\n${what}, after ${duration(end[i] - begin[i])}`;
    bars.push({ member: name, begin: begin[i], end: end[i], outcome: what, edge: 0.4, text });
    if (what !== "held") marks.push({ member: name, at: end[i], outcome: what, text });
  }
  return [bars, marks];
}

/** Return a bar for each column in which the member held something: what became of most of the records, if something did. */
function columns(name, places, from, to) {
  const { begin, end, size } = partition.spans, width = (to - from) / COLUMNS, cells = new Map();
  for (const i of places) {
    const what = outcome(i), left = Math.max(0, Math.floor((begin[i] - from) / width));
    const right = Math.min(COLUMNS - 1, Math.floor((end[i] - from) / width));
    for (let column = left; column <= right; column++) {
      const cell = cells.get(column) ?? cells.set(column, {}).get(column), key = column === right && end[i] <= to ? what : "held";
      cell[key] = (cell[key] ?? 0) + size[i] + 1;
    }
  }
  return [...cells].map(([column, cell]) => {
    const ends = Object.entries(cell).filter(([what]) => what !== "held").sort((a, b) => b[1] - a[1]);
    const text = [name, ...Object.entries(cell).map(([what, records]) => `${what}: ${whole(records)} records`)].join("\n");
    return { member: name, begin: from + column * width, end: from + (column + 1) * width, outcome: ends[0]?.[0] ?? "held", edge: 0, text };
  });
}

function give(chart, rows, signals = {}) {
  const view = views[chart];
  for (const [name, value] of Object.entries(signals)) view.signal(name, value);
  for (const [name, values] of Object.entries(rows)) view.data(name, values);
  return view.resize().runAsync();
}

/** Return what of the shown time is not known. */
function unknownIn(from, to) {
  return partition.unknown.filter(({ begin, end }) => end >= from && begin <= to)
    .map(({ begin, end, reason }) => ({ begin: Math.max(begin, from), end: Math.min(end, to), reason }));
}

/** Return where the marks of a picture begin: right of and below its axes, titles and padding, in pixels. */
function originOf(view) {
  const [left, top] = view.origin(), padding = view.padding();
  return [left + (padding.left ?? padding), top + (padding.top ?? padding)];
}

/** Hatch what is not known in a picture, with the reason where there is room. */
function hatch(chart, gaps) {
  const view = views[chart], container = element(`chart-${chart}`), scale = view.scale("x"), [left, top] = originOf(view);
  for (const old of container.querySelectorAll(".unknown")) old.remove();
  const canvas = container.querySelector("canvas"), box = container.getBoundingClientRect(), inner = canvas.getBoundingClientRect();
  for (const { begin, end, reason } of gaps) {
    const part = document.createElement("div"), width = scale(end) - scale(begin);
    part.className = "unknown";
    part.style.left = `${inner.left - box.left + left + scale(begin)}px`;
    part.style.top = `${inner.top - box.top + top}px`;
    part.style.width = `${Math.max(width, 2)}px`;
    part.style.height = `${view.height()}px`;
    if (width > 90) part.append(Object.assign(document.createElement("span"), { textContent: reason }));
    container.append(part);
  }
}

function sayUnknown(gaps) {
  element("unknown").replaceChildren(...gaps.map(({ begin, end, reason }) =>
    Object.assign(document.createElement("li"), { textContent: `Not known from ${when(begin)} to ${when(end)}: ${reason}.` })));
  element("unknown").hidden = gaps.length === 0;
}

async function draw() {
  const [from, to] = shown, places = [...within(from, to)], isRelative = element("relative").checked;
  const lines = isRelative ? [] : offsetLines(from, to);
  const [low, high] = isRelative ? [0, mostInFlight(from, to)] : offsetsOf(places, lines), isMuch = isRelative || places.length > MOST_RANGES;
  const pad = high - low > HEIGHT ? (high - low) / HEIGHT / 2 : 0;
  const ranges = isMuch ? grid(places, from, to, low, high, (time) => isRelative ? startAt(time) ?? 0 : 0) : places.map((i) => single(i, places.length > MOST_EDGED ? 0 : 0.5, pad));
  const labels = isMuch || places.length > MOST_LABELED ? [] : places.filter((i) => hasRoom(i, from, to, low, high)).map((i) => {
    const { first, last, begin, count } = partition.spans;
    return { begin: Math.max(begin[i], from), middle: (first[i] + last[i] + 1) / 2, label: ` ${state(i)} ×${count[i]}` };
  });
  const text = element("offset").value.trim(), found = !isRelative && /^[0-9]+$/.test(text) ? [{ offset: Number(text) + 0.5 }] : [];
  const { members, deliveries } = tallied(places, from, to), lanes = members.slice(0, MOST_MEMBERS);
  const drawn = lanes.map(([place, tally]) => lane(partition.members[place], tally.spans, from, to));
  const lag = thinned("lag", from, to).map(({ at, value }) => ({ at, lag: value }));
  element("shown").textContent = `Shown: ${when(from)} to ${when(to)}, ${duration(to - from)}; ${whole(places.length)} changes.` +
    (partition.dropped ? ` The first ${whole(partition.dropped)} changes are not on this page.` : "");
  element("scale").textContent = isMuch
    ? "A cell has the state that most of its records have in the middle of its time." + (isRelative ? "" : " Zoom in for single ranges, with the life of each record.")
    : "Each block is a range of records for the time of one state. Point at one for the life of a record; select it to keep that.";
  element("lag").hidden = partition.points.lag.every((value) => value === null);
  const time = { from, to };
  await Promise.all([
    give("records", { ranges, labels, lines, found }, { ...time, low, high }),
    give("members", { bars: drawn.flatMap(([bars]) => bars), marks: drawn.flatMap(([, marks]) => marks) }, time),
    give("lag", { lag }, time),
    give("deliveries", { deliveries: deliveries.map(([count, records]) => ({ label: `${count}: ${whole(records)}`, records })) }),
  ]);
  const gaps = unknownIn(from, to);
  for (const chart of ["records", "members", "lag"]) hatch(chart, gaps);
  sayUnknown(gaps);
  tabulate(places, members, deliveries);
}

function tabulate(places, members, deliveries) {
  const { begin, count, began } = partition.spans;
  fill(element("changes"), places.slice(0, MOST_ROWS).map((i) =>
    [when(begin[i]), range(i), report.causes[began[i]], state(i), count[i], member(i)]));
  element("changes-note").textContent = places.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${whole(places.length)}; zoom in for others.` : "";
  const names = report.outcome_names.slice(1), head = element("members").tHead.rows[0];
  head.replaceChildren(...["member", "acquired", ...names].map((name, i) => {
    const cell = document.createElement("th");
    cell.textContent = name;
    if (i > 0) cell.className = "number";
    return cell;
  }));
  fill(element("members"), members.map(([place, tally]) =>
    [partition.places[place], tally.acquired, ...names.map((name) => tally.outcomes.get(name) ?? 0)]));
  fill(element("deliveries"), deliveries);
  document.body.dataset.drawn = `${places.length}`;
}

/** Draw soon, and once for all that has changed until then. */
function redraw() {
  if (pending) return;
  pending = true;
  drawing = drawing.then(() => new Promise((done) => setTimeout(done))).then(() => { pending = false; return draw(); }).catch(fail);
}

// ---- the charts

function theme(colors) {
  const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim();
  const [ink, soft, edge, lines] = ["--ink", "--soft", "--edge", "--grid"].map(color);
  const text = { labelColor: ink, titleColor: soft };
  return {
    background: "transparent", font: "system-ui, sans-serif", view: { stroke: edge },
    axis: { ...text, gridColor: lines, domainColor: edge, tickColor: edge },
    legend: { ...text, orient: "top", symbolStrokeColor: edge, layout: { top: { direction: innerWidth < 500 ? "vertical" : "horizontal", anchor: "start" } } },
    range: { category: color(colors).split(" ") },
    line: { stroke: ink }, rule: { color: color("--bad") }, text: { color: ink, fill: ink },
    rect: { stroke: edge }, bar: { stroke: edge, fill: color("--states").split(" ")[1] },
    point: { stroke: ink }, area: { color: color("--states").split(" ")[1], line: { stroke: ink } },
  };
}

/** Show what *value* stands for beside the pointer: on a range of records, the life of the one that is pointed at. */
function tooltip(chart) {
  return (_handler, event, item, value) => {
    element("tip")?.remove();
    if (value === null || value === undefined || value === "") return;
    const tip = document.createElement("div");
    tip.id = "tip";
    tip.textContent = chart === "records" ? recordTip(event, item) : value;
    document.body.append(tip);
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(0, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8))}px`;
  };
}

function offsetAt(event) {
  const view = views.records, box = view.container().querySelector("canvas").getBoundingClientRect();
  return Math.floor(view.scale("y").invert(event.clientY - box.top - originOf(view)[1]));
}

function recordTip(event, item) {
  if (item.datum.text !== undefined) return `${item.datum.first}-${item.datum.beyond - 1}\n${item.datum.text}`;
  const offset = Math.min(Math.max(offsetAt(event), item.datum.first), item.datum.beyond - 1), rows = life(offset);
  const said = rows.slice(-12).map((row) => `${when(row.at)} ${row.what}: ${row.state}${row.count ? ` ×${row.count}` : ""} ${row.member}`);
  return [`Record ${offset}`, ...(rows.length > 12 ? [`${rows.length - 12} changes before`] : []), ...said].join("\n");
}

const COLORS = { records: "--states", members: "--outcomes" };

async function embed() {
  const specs = report.charts[partition.is_timed ? "timed" : "untimed"];
  for (const [name, spec] of Object.entries(specs)) {
    views[name]?.finalize();
    const options = { renderer: "canvas", actions: false, config: theme(COLORS[name] ?? "--states"), tooltip: tooltip(name), logLevel: 1 };
    views[name] = (await vegaEmbed(element(`chart-${name}`), spec, options)).view;
  }
  views.records.addEventListener("click", (event, item) => {
    if (item?.datum?.beyond !== undefined && item.datum.text === undefined) find(Math.min(Math.max(offsetAt(event), item.datum.first), item.datum.beyond - 1));
  });
  let waiting;
  views.whole.addSignalListener("brush", (_, chosen) => {
    clearTimeout(waiting);
    const time = Object.values(chosen)[0];
    if (time) waiting = setTimeout(() => chooseTime(+time[0], +time[1]), 150);
  });
  const lines = offsetLines(partition.from, partition.to), offsets = lines.map((row) => row.offset).filter((offset) => offset !== null);
  await give("whole", { lines }, { whole_from: partition.from, whole_to: partition.to,
    whole_low: Math.min(...offsets, Infinity) === Infinity ? 0 : Math.min(...offsets), whole_high: Math.max(...offsets, 1) });
}

// ---- what is chosen

function show(from, to) {
  const least = 0.01, middle = (from + to) / 2, half = Math.max(to - from, least) / 2;
  shown = [Math.max(partition.from, middle - half), Math.min(partition.to, middle + half)];
  if (shown[1] <= shown[0]) shown = [partition.from, partition.to];
  redraw();
}

const MOVES = {
  earlier: ([from, to]) => [from - (to - from) / 2, to - (to - from) / 2],
  later: ([from, to]) => [from + (to - from) / 2, to + (to - from) / 2],
  in: ([from, to]) => [from + (to - from) / 4, to - (to - from) / 4],
  out: ([from, to]) => [from - (to - from) / 2, to + (to - from) / 2],
  all: () => [partition.from, partition.to],
};

/** Show a time that was chosen, and have the address say so. */
function chooseTime(from, to) {
  show(from, to);
  const isAll = shown[0] === partition.from && shown[1] === partition.to;
  Object.assign(chosen, isAll ? { from: "all", to: undefined } : { from: `${shown[0]}`, to: `${shown[1]}` });
  note();
}

/** Move the shown time; one that would leave the history keeps its length. */
function move(name) {
  let [from, to] = MOVES[name](shown);
  if (name === "earlier" && from < partition.from) [from, to] = [partition.from, partition.from + to - from];
  if (name === "later" && to > partition.to) [from, to] = [partition.to - (to - from), partition.to];
  chooseTime(from, to);
}

function find(offset) {
  element("offset").value = offset;
  showLife();
  redraw();
  note();
}

/** Return whether offsets are shown from the SPSO on if nobody says so: where they would be a line otherwise. */
function isCrowded() {
  const [from, to] = shown, places = [...within(from, to)], [low, high] = offsetsOf(places, offsetLines(from, to));
  const isKnown = partition.points.start.at(-1) !== null; // or nothing would be in flight only as far as is known
  return places.length > 0 && ((isKnown && !partition.spans.ended.includes(GOES_ON)) || high - low > CROWDED * mostInFlight(from, to));
}

async function choose(place) {
  partition = opened(report.partitions[place]);
  chosen = {};
  element("partition").value = place;
  for (const section of document.querySelectorAll(".partition")) section.hidden = section.id !== `partition-${place}`;
  shown = [partition.spans.begin.at(-LATEST) ?? partition.from, partition.to];
  element("relative").checked = isCrowded();
  await embed();
  showLife();
  redraw();
}

/** Have the address name what is chosen, so that it leads here again. */
function note() {
  const offset = element("offset").value.trim(), address = new URLSearchParams(partition.address);
  for (const [name, value] of Object.entries({ offset: offset || undefined, ...chosen })) if (value !== undefined) address.set(name, value);
  history.replaceState(null, "", `#${address}`);
}

/** Return the place of the share partition that an address names, the topic by its name or its id; -1 without one. */
function placeOf(wanted) {
  const names = ({ address, topic_id }) => ({ group: [address.group], topic: [address.topic, topic_id], partition: [address.partition] });
  return report.partitions.findIndex((each) =>
    Object.entries(names(each)).every(([name, known]) => !wanted.has(name) || known.includes(wanted.get(name))));
}

/** Take the address: #group=orders&topic=payments&partition=0&offset=42&from=all&relative=1, of which each may be missing. */
async function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1)), place = placeOf(wanted);
  element("offset").value = wanted.get("offset") ?? "";
  element("elsewhere").hidden = place !== -1;
  await choose(Math.max(place, 0));
  for (const name of ["from", "to", "relative"]) if (wanted.has(name)) chosen[name] = wanted.get(name);
  if (wanted.has("relative")) element("relative").checked = wanted.get("relative") !== "0";
  if (wanted.get("from") === "all") show(partition.from, partition.to);
  else if (wanted.has("from") && wanted.has("to")) show(Number(wanted.get("from")), Number(wanted.get("to")));
  element("life").scrollIntoView({ block: "center" }); // nothing happens without an offset: it is hidden then
}

function fail(error) {
  element("failure").hidden = false;
  element("failure").textContent = `The pictures cannot be drawn: ${error.message}`;
}

async function start() {
  await unpack();
  element("pictures").hidden = false;
  element("chooser").hidden = report.partitions.length === 1;
  element("relative").addEventListener("change", (event) => {
    chosen.relative = event.target.checked ? "1" : "0";
    note();
    redraw();
  });
  element("partition").addEventListener("change", (event) => choose(Number(event.target.value)).then(note).catch(fail));
  element("controls").addEventListener("submit", (event) => { event.preventDefault(); showLife(); redraw(); note(); });
  element("controls").addEventListener("click", (event) => { if (event.target.dataset.move) move(event.target.dataset.move); });
  addEventListener("hashchange", () => follow().catch(fail));
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => embed().then(redraw).catch(fail));
  await follow();
}

start().catch(fail);
