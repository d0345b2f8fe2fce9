// Cache lines and the map: cuts what Python placed into lines, and makes the traces of kitlib.figures.layout.

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const place = (bit) => (bit % 8 ? `${Math.floor(bit / 8)}, bit ${bit % 8}` : `${bit / 8}`);
const bytes = (bits) =>
  bits < 8 && bits ? plural(bits, "bit") : plural(Math.floor(bits / 8), "byte") + (bits % 8 ? ` ${plural(bits % 8, "bit")}` : "");

// -- lines: how bits fall on cache lines --------------------------------------------------------------------

export function cut(bit, bits, lineBytes, phase) {
  const unit = lineBytes * 8, end = bit + bits + phase * 8, found = [];
  let start = bit + phase * 8;
  do {
    const stop = Math.min(end, (Math.floor(start / unit) + 1) * unit);
    found.push({ line: Math.floor(start / unit), start: start % unit, bits: stop - start, first: false });
    start = stop;
  } while (start < end);
  found.reduce((a, b) => (b.bits > a.bits ? b : a)).first = true;
  return found;
}

export function gaps(spans, sizeBits) {
  const found = [];
  let end = 0;
  for (const [bit, bits] of [...spans].sort((a, b) => a[0] - b[0])) {
    if (bit > end) found.push({ tag: "hole", bit: end, bits: bit - end });
    end = Math.max(end, bit + bits);
  }
  if (sizeBits > end) found.push({ tag: "padding", bit: end, bits: sizeBits - end });
  return found;
}

const span = (bit, bits, lineBytes, phase) =>
  [bit, bit + Math.max(bits, 1) - 1].map((b) => Math.floor((b + phase * 8) / (lineBytes * 8)));

function figures(members, size, chosen, lineBytes, phase) {
  // The rows of the table for one layout; `members` are {name, bit, bits}.
  const free = gaps(members.map((m) => [m.bit, m.bits]), size * 8);
  const holes = free.filter((g) => g.tag === "hole");
  const sum = (list) => bytes(list.reduce((n, g) => n + g.bits, 0));
  const own = members.find((m) => m.name === chosen);
  const rows = [
    ["size", plural(size, "byte")],
    ["lines touched", `${plural(size ? span(0, size * 8, lineBytes, phase)[1] + 1 : 0, "line")} of ${lineBytes} bytes`],
    ["holes", holes.length ? `${holes.length} (${sum(holes)})` : "none"],
    ["padding at the end", sum(free.filter((g) => g.tag === "padding"))],
  ];
  if (!chosen) return rows; // no members at all
  if (!own) return [...rows, [`offset of ${chosen}`, "not there"], [`shares a line with ${chosen}`, "–"]];
  const [low, high] = span(own.bit, own.bits, lineBytes, phase);
  const mates = members.filter((m) => {
    const [first, last] = span(m.bit, m.bits, lineBytes, phase);
    return m !== own && m.bits && first <= high && last >= low;
  });
  const where = low === high ? `line ${low}` : `lines ${low} to ${high}`;
  return [
    ...rows,
    [`offset of ${chosen}`, `${place(own.bit)} (${where})`],
    [`shares a line with ${chosen}`, mates.map((m) => m.name).join(", ") || "nothing"],
  ];
}

// -- the map: the same traces as kitlib.figures.layout ------------------------------------------------------

export function wrap(name, chars) {
  if (name.length <= chars) return name;
  if (chars < 4) return "";
  let parts = [""];
  for (let word of name.match(/[^_ ]*[_ ]|[^_ ]+/g)) {
    if ((parts.at(-1) + word).trimEnd().length > chars) parts.push("");
    for (; word.trimEnd().length > chars; word = word.slice(chars)) parts.splice(-1, 1, word.slice(0, chars), "");
    parts[parts.length - 1] += word;
  }
  parts = parts.map((part) => part.trim()).filter(Boolean);
  if (parts.length > 3) parts.splice(2, Infinity, `${parts[2].slice(0, chars - 1)}…`);
  return parts.join("<br>");
}

function label(block, piece, style, lineBytes, chars) {
  const room = Math.floor((chars * piece.bits) / 8 / lineBytes);
  let mark = style.marks[block.tag];
  if (mark && block.inside) mark = `(${mark})`;
  const name = piece.lines > 1 ? `${block.name} · ${piece.lines} lines` : piece.first ? block.name : `…${block.name}`;
  const text = !mark || room < mark.length + 2 ? wrap(name, room) || mark : wrap(`${mark} ${name}`, room);
  return text.split("<br>").map(escape).join("<br>");
}

function blocksOf(variant, state) {
  const found = variant.members.map((m, i) => {
    const align = Math.max(m.natural, state.forced[i], 1);
    let where = `offset ${place(state.offsets[i])}`;
    if (m.was !== null && m.was !== state.offsets[i]) where += `, was ${place(m.was)}`;
    else if (m.was === null) where += ", not there before";
    const hover = `${m.hover[0]}<br>${where}<br>${m.hover[1]}, alignment ${align}<br>${m.hover[2]}`;
    return { ...m, bit: state.offsets[i], hover, member: i };
  });
  for (const gap of gaps(found.map((b) => [b.bit, b.bits]), state.size * 8)) {
    const name = `${gap.bits % 8 ? `${gap.bits}-bit` : `${gap.bits / 8}-byte`} ${gap.tag}`;
    found.push({ ...gap, name, hover: `<b>${name}</b><br>from byte ${gap.bit / 8}`, lane: 0, lanes: 1, member: -1 });
  }
  return found.sort((a, b) => a.bit - b.bit || (a.bits > 0) - (b.bits > 0) || a.lane - b.lane);
}

function frame(style, piece, block, color, dash) {
  const grow = dash === "dash" ? 0.04 : 0, height = style.bar / block.lanes;
  const top = piece.line - style.bar / 2 + block.lane * height;
  return {
    type: "rect", xref: "x", yref: "y", x0: piece.start / 8, x1: (piece.start + piece.bits) / 8,
    y0: top - grow, y1: top + height + grow, line: { color, width: 2.5, dash },
  };
}

// Rows as kitlib.blocks.map_rows makes them: [first line, last line].
export function mapRows(pieces, lines, lineBytes, foldFrom, apart) {
  const whole = lineBytes * 8, on = new Map(), rows = [];
  for (const piece of pieces) on.set(piece.line, [...(on.get(piece.line) ?? []), piece]);
  const filledBy = (line) => {
    const here = on.get(line) ?? [];
    return !apart.has(line) && here.every((p) => p.bits === whole) ? here.map((p) => p.block) : [];
  };
  for (let line = 0, next; line < lines; line = next) {
    const filled = filledBy(line), same = (other) => other.length === filled.length && other.every((b, i) => b === filled[i]);
    for (next = line + 1; filled.length && next < lines && same(filledBy(next)); ) next += 1;
    if (filled.length && next - line >= foldFrom) rows.push([line, next - 1]);
    else for (let n = line; n < next; n++) rows.push([n, n]);
  }
  return rows;
}

function fold(pieces, rows) {
  const at = new Map(rows.map(([first, last], line) => [first, { line, lines: last - first + 1 }]));
  const end = rows.at(-1)[1];
  return pieces.flatMap((p) => {
    const row = at.get(p.line) ?? (p.line > end ? { line: rows.length, lines: 1 } : null);
    return row ? [{ ...p, ...row }] : [];
  });
}

export function draw(style, variant, state, view, width) {
  const { line: lineBytes, phase, member } = view;
  const byTag = {}, frames = [];
  const lines = Math.max(state.size ? span(0, state.size * 8, lineBytes, phase)[1] + 1 : 0, 1);
  const cutUp = (block, bit) => cut(bit, block.bits, lineBytes, phase).map((piece) => ({ ...piece, block }));
  const old = state.moved.map((i) => variant.members[i]).filter((m) => m.was !== null).flatMap((m) => cutUp(m, m.was));
  const every = blocksOf(variant, state).flatMap((block) => cutUp(block, block.bit));
  const rowLines = mapRows(every, lines, lineBytes, style.fold_from, new Set(old.map((p) => p.line))), rows = rowLines.length;
  const shapes = fold(old, rowLines).filter((p) => p.line < rows)
    .map((p) => frame(style, p, { lane: 0, lanes: 1 }, style.moved, "dash"));
  for (const piece of fold(every, rowLines)) {
    const { block } = piece;
    const color = block.member === member ? style.accent : state.moved.includes(block.member) ? style.moved : null;
    (byTag[block.tag] ??= []).push([block, piece]);
    if (color && piece.bits) frames.push(frame(style, piece, block, color, "solid"));
  }
  const chars = (style.chars * width) / 1000;
  const traces = Object.keys(style.traces).filter((tag) => byTag[tag]).map((tag) => {
    const parts = byTag[tag];
    return {
      ...style.traces[tag],
      y: parts.map(([, p]) => p.line), base: parts.map(([, p]) => p.start / 8), x: parts.map(([, p]) => p.bits / 8),
      width: parts.map(([b]) => style.bar / b.lanes),
      offset: parts.map(([b]) => -style.bar / 2 + (b.lane * style.bar) / b.lanes),
      text: parts.map(([b, p]) => label(b, p, style, lineBytes, chars)),
      hovertext: parts.map(([b]) => b.hover), customdata: parts.map(([b]) => b.member),
    };
  });
  if (byTag.marker) {
    const parts = byTag.marker;
    traces.push({
      ...style.marker, x: parts.map(([, p]) => (p.line < rows ? p.start / 8 : lineBytes)),
      y: parts.map(([, p]) => Math.min(p.line, rows - 1) - style.bar / 2 - 0.02),
      hovertext: parts.map(([b]) => b.hover), customdata: parts.map(([b]) => b.member),
    });
  }
  if (state.moved.length) traces.push(style.ghost);
  return { traces, shapes: [...shapes, ...frames], rows: rowLines };
}

function layoutOf(style, drawn, view, width, ink) {
  const { rows } = drawn, named = (first, last) => (first === last ? `line ${first}` : `lines ${first}–${last}`);
  const axis = { fixedrange: true, zeroline: false };
  return {
    ...style.layout, width, height: rows.length * style.row_px + 120, shapes: drawn.shapes,
    font: { ...style.layout.font, color: ink },
    xaxis: { ...axis, range: [0, view.line], dtick: view.line <= 64 ? 8 : 16, side: "top" },
    yaxis: {
      ...axis, range: [rows.length - 0.5, -0.5], showgrid: false, ticklabelstandoff: 8, tickvals: [...rows.keys()],
      ticktext: rows.map(([first, last]) => `${named(first, last)} · byte ${Math.max(first * view.line - view.phase, 0)}`),
    },
  };
}
