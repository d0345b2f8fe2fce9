// The host without a kernel: answers the explorer's requests from the tables of kitlib.statetable.

function lookUp(variant, point) {
  const { tables: t, members, start } = variant;
  const m = t.members.indexOf(point.member), state = structuredClone(start);
  if (m < 0) {
    const s = t.struct_aligns.indexOf(point.struct_align), { align, size } = t.unmoved;
    return Object.assign(state, { size: size[s], align: align[s], struct_align: point.struct_align });
  }
  const table = t.tables[t.table_of[m][t.aligns[m].indexOf(point.align)]];
  const [low] = members[point.member].positions, step = table.steps, s = t.struct_aligns.indexOf(point.struct_align);
  let at = 0, sizes = [];
  for (let position = low; position <= point.position; position++) {
    const head = step[at++];
    for (let k = head >> 1; k > 0; k--, at += 2) {
      const number = step[at] < 0 ? point.member : step[at] + position - members.length;
      state.offsets[number] += step[at + 1];
    }
    if (head & 1) { sizes = step.slice(at, at + t.struct_aligns.length); at += sizes.length; }
  }
  state.order.splice(point.position, 0, state.order.splice(point.member, 1)[0]);
  state.forced[point.member] = point.align;
  if (point.position !== point.member && !state.moved.includes(point.member)) state.moved.push(point.member);
  return Object.assign(state, { size: sizes[s], align: table.align[s], struct_align: point.struct_align });
}

function home(variant, member) {
  return { member, position: member, align: variant.start.forced[member] ?? 0, struct_align: variant.start.struct_align };
}

function editsOf(variant, point) {
  const { name, named } = variant.members[point.member] ?? {}, base = home(variant, point.member), edits = [];
  const called = named ? name : `#${point.member}`;
  if (point.align !== base.align) edits.push({ edit: "align", member: called, align: point.align });
  if (point.position !== base.position) edits.push({ edit: "move", member: called, index: point.position });
  if (point.struct_align !== base.struct_align) edits.push({ edit: "align_struct", align: point.struct_align });
  return edits;
}

const spoken = (e) =>
  e.edit === "align" ? `align ${e.member} to ${e.align}`
    : e.edit === "move" ? `move ${e.member} to position ${e.index}` : `align the struct to ${e.align}`;

function paholeText(variant, state) {
  const rows = state.order.flatMap((i) => variant.members[i].declaration.map(([depth, text, rel, bits, unit]) => {
    const code = "\t".repeat(depth) + text;
    if (rel === null) return code;
    const bit = state.offsets[i] + rel, from = unit ? Math.floor(bit / unit) * unit : bit;
    const where = unit ? `${from / 8}:${String(bit - from).padStart(2)}` : `${bit / 8}`;
    return `${code.padEnd(48)} /* ${where.padStart(5)} ${String((unit || bits) / 8).padStart(5)} */`;
  }));
  const trailer = `\t/* size: ${state.size}, cachelines: ${Math.ceil(state.size / 64)}, members: ${state.order.length} */`;
  return `${variant.kind} ${variant.name ?? ""} {\n${rows.join("\n")}\n\n${trailer}\n};\n`;
}

function extraOf(variant, point) {
  const { extras } = variant, edits = editsOf(variant, point);
  if (!extras) return null;
  if (!edits.length) return extras.tables[extras.start];
  const [low] = variant.members[point.member].positions;
  const number = edits.every((e) => e.edit === "move") ? extras.moves[point.member]?.[point.position - low] : undefined;
  return number === undefined ? { missing: true } : extras.tables[number];
}

export function offline(data) {
  // A stand-in for the widget model: requests are answered from the tables of `data`.
  let variant = 0, at = 0, past = [home(data.variants[0], data.view.member)];
  const answer = (request) => {
    const own = () => data.variants[variant];
    let shown = past[at];
    const more = {};
    if (request.op === "edit" || request.op === "struct_align") {
      const next = { ...shown };
      if (request.op === "struct_align") next.struct_align = request.align;
      else {
        if (request.member !== shown.member) {
          if (editsOf(own(), shown).some((e) => e.member))
            more.note = `This page moves one member at a time: ${own().members[shown.member].name} is back in its place.`;
          Object.assign(next, home(own(), request.member), { struct_align: shown.struct_align });
        }
        if (request.position !== undefined) next.position = request.position;
        if (request.align !== undefined) next.align = request.align;
      }
      shown = next;
      if (request.commit && JSON.stringify(next) !== JSON.stringify(past[at])) past = [...past.slice(0, ++at), next];
    } else if (request.op === "undo" || request.op === "redo") {
      at = Math.min(Math.max(at + (request.op === "undo" ? -1 : 1), 0), past.length - 1);
    } else if (request.op === "reset" || request.op === "variant") {
      const name = own().members[shown.member]?.name;
      variant = request.index ?? variant;
      past = [home(own(), Math.max(own().members.findIndex((m) => m.name === name), 0))];
      at = 0;
    }
    if (!request.op.endsWith("edit") && request.op !== "struct_align") shown = past[at];
    const state = lookUp(own(), shown), edits = editsOf(own(), shown);
    if (request.op === "save") {
      const record = { format: "kitlib-scenario", version: 1, base: own().base, edits };
      more.file = { name: "scenario.json", text: `${JSON.stringify(record, null, 1)}\n` };
    }
    if (request.op === "copy") more.text = paholeText(own(), state);
    return {
      ...state, ...more, variant, edits: edits.map(spoken), undo: at > 0, redo: at < past.length - 1,
      extra: extraOf(own(), shown), seq: request.seq,
    };
  };
  const held = { data, value: answer({ op: "reset", seq: 0 }) }, listeners = [];
  return {
    get: (key) => held[key],
    on: (event, call) => { if (event === "change:value") listeners.push(call); },
    send: ({ request }) => { held.value = answer(request); listeners.forEach((call) => call()); },
  };
}
