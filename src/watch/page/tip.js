// Tooltip of a chart next to the pointer: a row for each curve. Elements are kept and changed where something differs,
// and nothing is measured, so that the pointer can move with every frame.
class Tip {
  constructor() {
    this.box = element("div", {className: "tip", hidden: true});
    this.title = element("div");
    this.box.append(this.title);
    this.rows = [];
    this.notes = [];
  }

  hide() {
    this.box.hidden = true;
  }

  // `at` of `width`: where the pointer is; the tip stands on the side that has more room.
  show({title, rows, notes, at, width, top}) {
    setText(this.title, title);
    rows.forEach(({colour, name, value}, i) => {
      const row = (this.rows[i] ??= this.newRow());
      if (row.colour !== colour) row.swatch.style.background = row.colour = colour;
      setText(row.name, name);
      setText(row.value, value);
    });
    notes.forEach((text, i) => setText((this.notes[i] ??= this.newNote()), text));
    this.rows.forEach((row, i) => (row.line.hidden = i >= rows.length));
    this.notes.forEach((note, i) => (note.hidden = i >= notes.length));
    const {style} = this.box, isRight = at > width / 2;
    style.left = isRight ? "auto" : `${at + 26}px`;
    style.right = isRight ? `${width - at + 26}px` : "auto";
    style.top = `${top}px`;
    this.box.hidden = false;
  }

  newRow() {
    const row = {line: element("div"), swatch: element("i"), name: element("span", {className: "name"}), value: element("b")};
    row.line.append(row.swatch, row.name, row.value);
    this.rows.at(-1) ? this.rows.at(-1).line.after(row.line) : this.title.after(row.line);
    return row;
  }
  newNote() {
    const note = element("div", {className: "text"});
    this.box.append(note);
    return note;
  }
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
