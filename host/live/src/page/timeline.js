// Where in the run the page is: following the newest view, paused, or playing.

const PERIOD_MS = 33;

export class Timeline {
  constructor({ slider, play, follow, speed, send }) {
    Object.assign(this, { slider, playButton: play, followButton: follow, speed, send });
    this.reset();
    slider.addEventListener("input", () => this.seek(Number(slider.value)));
    play.addEventListener("click", () => this.toggle());
    follow.addEventListener("click", () => this.followNewest());
    document.addEventListener("keydown", (event) => this.key(event));
    setInterval(() => this.tick(), PERIOD_MS);
  }

  reset() {
    this.count = 0;
    this.index = 0;
    this.follows = true;
    this.isPlaying = false;
    this.isWaiting = false;
    this.paint();
  }

  // The server says which view it shows.
  update({ count, index, follows }) {
    this.count = count;
    this.isWaiting = false;
    if (follows || (!this.isPlaying && Math.round(this.index) !== index && !this.isSeeking)) this.index = index;
    this.isSeeking = false;
    this.follows = follows;
    this.paint();
  }

  startPlaying() {
    this.isPlaying = true;
    this.follows = false;
    this.index = 0;
    this.paint();
  }

  seek(index) {
    this.isPlaying = false;
    this.go(index);
  }

  go(index) {
    this.index = Math.max(0, Math.min(index, Math.max(this.count - 1, 0)));
    this.follows = false;
    this.isWaiting = true;
    this.isSeeking = true;
    this.send({ index: Math.round(this.index) });
    this.paint();
  }

  followNewest() {
    this.isPlaying = false;
    this.follows = true;
    this.send({ follow: true });
    this.paint();
  }

  toggle() {
    if (this.follows) {
      this.seek(this.index);
    } else if (this.isPlaying) {
      this.isPlaying = false;
      this.paint();
    } else {
      this.isPlaying = true;
      if (this.index >= this.count - 1) this.index = 0;
      this.paint();
    }
  }

  // One view after the other, none before the last has come.
  tick() {
    if (!this.isPlaying || this.isWaiting || this.count === 0) return;
    if (this.index >= this.count - 1) {
      this.isPlaying = false;
      this.paint();
      return;
    }
    this.go(this.index + Number(this.speed.value));
  }

  key(event) {
    if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") this.toggle();
    else if (event.key === "ArrowLeft") this.seek(Math.round(this.index) - 1);
    else if (event.key === "ArrowRight") this.seek(Math.round(this.index) + 1);
    else if (event.key === "l" || event.key === "L") this.followNewest();
    else return;
    event.preventDefault();
  }

  paint() {
    this.slider.max = Math.max(this.count - 1, 0);
    this.slider.value = Math.round(this.index);
    const moves = this.follows || this.isPlaying;
    this.playButton.textContent = moves ? "pause" : "play";
    this.followButton.setAttribute("aria-pressed", String(this.follows));
  }
}
