// The lines of the log. They come from boards: they are text and never markup.

const MOST_SHOWN = 500;

export class LogPanel {
  constructor({ list, filter, level }) {
    this.list = list;
    this.filter = filter;
    this.level = level;
    this.lines = [];
    filter.addEventListener("input", () => this.rebuild());
    level.addEventListener("change", () => this.rebuild());
  }

  add(lines, isReset) {
    if (isReset) this.lines = [];
    for (const line of lines) this.lines.push(line);
    if (isReset) this.rebuild();
    else this.append(lines);
  }

  rebuild() {
    this.list.replaceChildren();
    this.append(this.lines);
  }

  append(lines) {
    const isAtEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 4;
    const text = this.filter.value.toLowerCase();
    const least = Number(this.level.value);
    const shown = lines.filter((line) => line.level >= least && `${line.name} ${line.message}`.toLowerCase().includes(text));
    for (const line of shown.slice(-MOST_SHOWN)) {
      const item = document.createElement("li");
      item.dataset.level = line.level;
      item.textContent = `round ${line.round}  ${line.name}: ${line.message}`;
      this.list.appendChild(item);
    }
    while (this.list.childElementCount > MOST_SHOWN) this.list.firstElementChild.remove();
    if (isAtEnd) this.list.scrollTop = this.list.scrollHeight;
  }
}
