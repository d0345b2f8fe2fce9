// The explorer's front end: controls, tables and redrawing. Two hosts run it: JupyterLab through anywidget, where
// a kernel answers each request, and a page without a kernel (explorer_page.js). Nothing in here places members.
// kitlib.explore joins this file with explorer_map.js and explorer_page.js into one module.

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

// -- plotly.js, loaded once a page ---------------------------------------------------------------------------

export async function inflate(compressed) {
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

export function run(code) {
  // plotly.js sets window.Plotly; a script element works where eval is forbidden.
  document.head.append(el("script", {}, code));
  return globalThis.Plotly;
}

function plotly(model) {
  globalThis.kitlibPlotly ??= globalThis.Plotly?.react ? Promise.resolve(globalThis.Plotly) : new Promise((done) => {
    model.on("msg:custom", (message, buffers) => {
      if (message.kind === "plotly" && !globalThis.Plotly?.react) inflate(buffers[0]).then((code) => done(run(code)));
    });
    model.send({ kind: "plotly" });
  });
  return globalThis.kitlibPlotly;
}

// -- controls ------------------------------------------------------------------------------------------------

function slider(name, title, onMove) {
  const input = el("input", { type: "range", name, min: "0", step: "1" }), output = el("output");
  input.addEventListener("input", () => onMove(Number(input.value), false));
  input.addEventListener("change", () => onMove(Number(input.value), true));
  return { input, output, row: el("label", { class: "kit-control" }, el("span", {}, title), input, output) };
}

function show({ input, output }, value, max, text, min = 0) {
  Object.assign(input, { min, max, disabled: min >= max });
  input.value = value;
  output.textContent = text;
  input.setAttribute("aria-valuetext", text);
}

function chooser(name, title, options, onChange) {
  const select = el("select", { name }, ...options.map((text, i) => el("option", { value: String(i) }, text)));
  select.addEventListener("change", () => onChange(Number(select.value)));
  return { select, row: el("label", { class: "kit-control" }, el("span", {}, title), select, el("output")) };
}

function toggle({ name, states, option, about }, onChange) {
  // One option (a switch) or choice (a list) of a configuration.
  if (!option) {
    const { select, row } = chooser(name, name, states, onChange);
    row.title = about;
    return { row, show: (state) => { select.value = state; } };
  }
  const input = el("input", { type: "checkbox", name });
  input.addEventListener("change", () => onChange(Number(input.checked)));
  const row = el("label", { class: "kit-switch", title: about }, input, el("span", {}, name));
  return { row, show: (state) => { input.checked = state === 1; } };
}

function tableOf(columns, rows, caption) {
  const head = el("tr", {}, ...columns.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...cells]) =>
    el("tr", {}, el("th", { scope: "row" }, first), ...cells.map((text) => el("td", {}, text))));
  return el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body));
}

class Explorer {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.data = model.get("data");
    this.state = model.get("value");
    this.view = { ...this.data.view };
    this.seq = this.state.seq; // another view of the same explorer may have asked before
    this.drawn = 0;
    this.page = "tables" in this.data.variants[0];
    this.build();
    model.on("change:value", this.listen = () => this.receive());
    plotly(model).then((library) => { this.plotly = library; this.redraw(); });
    this.sync();
    this.watchSurroundings();
  }

  get variant() { return this.data.variants[this.state.variant]; }

  ask(op, more = {}) {
    this.seq = Math.max(this.seq, this.model.get("value").seq) + 1;
    this.model.send({ kind: "request", request: { op, ...more, seq: this.seq } });
  }

  build() {
    const { data, view } = this, member = () => ({ member: view.member });
    const aligns = () => this.variant.members[view.member].aligns;
    this.variants = chooser("variant", "configuration", data.variants.map((v) => v.label), (index) => this.ask("variant", { index }));
    this.members = chooser("member", "member", [], (index) => { view.member = index; this.sync(); this.redraw(); });
    this.position = slider("position", "position", (position, commit) => this.ask("edit", { ...member(), position, commit }));
    this.align = slider("align", "alignment", (i, commit) => this.ask("edit", { ...member(), align: aligns()[i], commit }));
    this.structAlign = slider("struct_align", "struct alignment", (i, commit) =>
      this.ask("struct_align", { align: this.variant.struct_aligns[i], commit }));
    this.line = slider("line_bytes", "line size", (i) => { view.line = data.style.line_sizes[i]; this.look(); });
    this.phase = slider("phase", "phase", (i) => { view.phase = i * this.phaseStep; this.look(); });
    const button = (op, text) => {
      const made = el("button", { type: "button", name: op }, text);
      made.addEventListener("click", () => this.ask(op));
      return made;
    };
    this.buttons = Object.fromEntries([["undo", "Undo"], ["redo", "Redo"], ["reset", "Reset"], ["save", "Save scenario"],
      ["copy", "Copy as pahole text"]].map(([op, text]) => [op, button(op, text)]));
    this.title = el("strong");
    this.status = el("p", { class: "kit-status", "aria-live": "polite" });
    this.problem = el("p", { class: "kit-problem", role: "alert" });
    this.plot = el("div", { class: "kit-plot", role: "img" });
    this.tables = el("div", { class: "kit-tables" });
    this.text = el("textarea", { class: "kit-text", readOnly: true, hidden: true, rows: "8", "aria-label": "pahole text" });
    const controls = [this.variants, this.members, this.position, this.align, this.structAlign, this.line, this.phase];
    if (data.variants.length < 2 || data.toggles.length) controls.shift();
    this.toggles = data.toggles.map((each, i) => toggle(each, (state) => this.set(i, state)));
    this.root.classList.add("kit-explorer");
    this.root.append(
      el("div", { class: "kit-head" }, this.title, el("span", { class: "kit-badge kit-exact" }, "= exact")),
      ...(data.toggles.length ? [this.configuration()] : []),
      el("div", { class: "kit-controls" }, ...controls.map((c) => c.row)),
      el("div", { class: "kit-buttons" }, ...Object.values(this.buttons)), this.problem,
      el("div", { class: "kit-scroll" }, this.plot), this.status, this.text, this.tables);
    // JupyterLab takes arrow keys for itself, and Notebook does so before a native slider could see them. What has
    // the focus must say that it wants them: looking for a shortcut ends at an element with this attribute.
    for (const node of this.root.querySelectorAll("input, select, textarea, button"))
      node.setAttribute("data-lm-suppress-shortcuts", "true");
  }

  configuration() {
    return el("fieldset", { class: "kit-toggles" }, el("legend", {}, "configuration"), ...this.toggles.map((t) => t.row));
  }

  set(which, state) {
    // The setting asked for last counts, not the one shown: an answer may still be under way.
    this.setting[which] = state;
    const index = this.data.settings.findIndex((known) => known.every((s, i) => s === this.setting[i]));
    this.ask("variant", { index });
  }

  receive() {
    const value = this.model.get("value");
    if (value.file) this.download(value.file);
    if (value.text) this.offer(value.text);
    if (value.seq < this.seq) return; // a newer request is under way
    const other = value.variant !== this.state.variant, name = this.variant.members[this.view.member]?.name;
    this.state = value;
    if (other) this.view.member = Math.max(this.variant.members.findIndex((m) => m.name === name), 0);
    this.sync();
    this.redraw();
  }

  look() { this.sync(); this.redraw(); }

  get phaseStep() { return Math.min(this.state.align, this.view.line); }

  sync() {
    const { variant, state, view } = this, own = variant.members[view.member], sizes = this.data.style.line_sizes;
    view.phase = Math.min(view.phase - (view.phase % this.phaseStep), view.line - this.phaseStep);
    this.title.textContent = variant.title;
    this.variants.select.value = state.variant;
    const names = variant.members.map((m) => m.name);
    if (this.members.select.options.length !== names.length || this.shownVariant !== state.variant)
      this.members.select.replaceChildren(...names.map((text, i) => el("option", { value: String(i) }, text)));
    if (this.toggles.length && this.shownVariant !== state.variant) {
      this.setting = [...this.data.settings[state.variant]];
      this.toggles.forEach((each, i) => each.show(this.setting[i]));
    }
    this.shownVariant = state.variant;
    this.members.select.value = view.member;
    const at = state.order.indexOf(view.member), tables = variant.tables, row = tables?.members.indexOf(view.member) ?? 0;
    const here = row < 0 ? at : own?.positions[0], [low, high] = row < 0 ? [here, here] : own?.positions ?? [0, 0];
    const previous = at > 0 ? `after ${names[state.order[at - 1]]}` : "first";
    const why = row < 0 ? "this page holds no moves of it" : own?.fixed ?? "";
    show(this.position, at, high, own ? `${at + 1} of ${names.length}, ${previous}${why && `; fixed: ${why}`}` : "no members", low);
    this.members.select.disabled = !own;
    const kept = tables && row >= 0 ? own.aligns.filter((a) => tables.aligns[row].includes(a)) : own?.aligns ?? [0];
    if (own) own.aligns = kept;
    const none = (a) => (a ? `${a} bytes` : "none asked for");
    const locked = variant.reason !== null || row < 0;
    const asked = none(state.forced[view.member] ?? 0);
    show(this.align, kept.indexOf(state.forced[view.member]), locked ? 0 : kept.length - 1,
      !own ? "no members" : tables && !locked && kept.length < 2 ? `${asked}; fixed: this page holds no others` : asked);
    show(this.structAlign, variant.struct_aligns.indexOf(state.struct_align), variant.reason === null ? variant.struct_aligns.length - 1 : 0,
      `${none(state.struct_align)} (is ${state.align})`);
    show(this.line, sizes.indexOf(view.line), sizes.length - 1, `${view.line} bytes`);
    show(this.phase, view.phase / this.phaseStep, view.line / this.phaseStep - 1,
      `starts at byte ${view.phase}${this.phaseStep === view.line ? "; fixed: aligned to a line" : ""}`);
    Object.assign(this.buttons.undo, { disabled: !state.undo });
    Object.assign(this.buttons.redo, { disabled: !state.redo });
    this.problem.textContent = state.error ?? (variant.reason ? `Members cannot be moved here: ${variant.reason}.` : state.note ?? "");
    this.fill();
  }

  fill() {
    const { variant, state, view, data } = this, chosen = variant.members[view.member]?.name ?? "", was = variant.before;
    const now = figures(variant.members.map((m, i) => ({ name: m.name, bit: state.offsets[i], bits: m.bits })), state.size, chosen, view.line, view.phase);
    const old = figures(was.members, was.size, chosen, view.line, view.phase);
    const title = was.same ? "before" : `before: ${was.title}`;
    const parts = [tableOf(["", title, "now"], now.map(([what, text], i) => [what, old[i][1], text]),
      state.edits.length ? `Edits: ${state.edits.join("; ")}` : "No edits")];
    if (data.extra && state.extra?.rows) {
      const extra = tableOf(state.extra.columns, state.extra.rows, data.extra.title);
      extra.caption.append(" ", el("span", { class: `kit-badge kit-${data.extra.kind}` }, data.extra.mark));
      parts.push(extra);
    } else if (data.extra && state.extra?.missing)
      parts.push(el("p", {}, `${data.extra.title}: not computed ahead for this state; run the notebook with kitlib lab.`));
    if (this.page) parts.push(el("p", { class: "kit-note" }, "This page has no kernel: it holds every layout with one member moved and aligned. " +
      "To chain edits of several members, open the notebook with kitlib lab." + (variant.tables.left_out ? ` Left out here: ${variant.tables.left_out}.` : "")));
    this.tables.replaceChildren(...parts);
    const about = now.slice(4).map(([what, text]) => `${what}: ${text}`).join("; ");
    this.status.textContent = `${about && `${about}. `}${now[0][1]} on ${now[1][1]}.`;
    this.plot.setAttribute("aria-label", `Cache-line map of ${variant.title}. ${this.status.textContent}`);
  }

  redraw() {
    if (!this.plotly || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(async () => {
      this.waiting = false;
      const started = performance.now(), { style } = this.data;
      const width = Math.max(this.plot.parentElement.clientWidth, style.min_width);
      const drawn = draw(style, this.variant, this.state, this.view, width - style.layout.margin.l - style.layout.margin.r);
      const layout = layoutOf(style, drawn, this.view, width, getComputedStyle(this.root).color);
      await this.plotly.react(this.plot, drawn.traces, layout, { ...style.config, responsive: false });
      if (!this.drawn) this.plot.on("plotly_click", ({ points }) => this.choose(points[0].customdata));
      this.root.dataset.draws = ++this.drawn;
      this.root.dataset.drawMs = (performance.now() - started).toFixed(1);
    });
  }

  choose(member) {
    if (!(member >= 0)) return;
    this.view.member = member;
    this.look();
  }

  download({ name, text }) {
    const link = el("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "application/json" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async offer(text) {
    Object.assign(this.text, { value: text, hidden: false });
    try {
      await navigator.clipboard.writeText(text);
      this.problem.textContent = "Copied; the text is shown below too.";
    } catch {
      this.text.select();
      this.problem.textContent = "The browser does not let this page copy: the text is selected below.";
    }
  }

  watchSurroundings() {
    const again = () => this.redraw();
    this.sizes = new ResizeObserver(again);
    this.sizes.observe(this.root);
    this.themes = new MutationObserver(again);
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  }

  close() {
    this.model.off?.("change:value", this.listen);
    this.sizes.disconnect();
    this.themes.disconnect();
    this.plotly?.purge(this.plot);
  }
}

function render({ model, el: root }) {
  const box = document.createElement("div");
  root.append(box);
  const explorer = new Explorer(model, box);
  return () => explorer.close();
}

export default { render };
