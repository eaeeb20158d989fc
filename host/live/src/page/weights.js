// How the weights of training samples are spread: right labels above the axis, wrong ones below it.

export class WeightBars {
  constructor({ panel, bars }) {
    Object.assign(this, { panel, bars });
  }

  show(weights) {
    this.panel.hidden = !weights;
    if (!weights) return;
    const count = weights.right.length;
    while (this.bars.children.length < count) {
      const column = this.bars.appendChild(document.createElement("div"));
      column.append(document.createElement("i"), document.createElement("i"));
    }
    const most = Math.max(...weights.right, ...weights.wrong, 1);
    for (let bar = 0; bar < count; bar += 1) {
      const column = this.bars.children[bar];
      const [right, wrong] = [weights.right[bar], weights.wrong[bar]];
      column.children[0].style.height = `${(50 * right) / most}%`;
      column.children[1].style.height = `${(50 * wrong) / most}%`;
      column.title = `weight ${(bar / count).toFixed(3)} to ${((bar + 1) / count).toFixed(3)}: ${right} right labels, ${wrong} wrong ones`;
    }
    const sum = (side) => side.reduce((sum, count) => sum + count, 0);
    const heavy = (side) => sum(side.slice(count / 2));
    this.bars.setAttribute(
      "aria-label",
      `Weights from 0 to 1: ${heavy(weights.right)} of ${sum(weights.right)} right labels and ${heavy(weights.wrong)} of ${sum(weights.wrong)} wrong ones weigh more than a half.`,
    );
  }
}
