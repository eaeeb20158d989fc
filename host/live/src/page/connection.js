// The connection to the run: reconnects by itself, for as long as the page is open.

const SHORTEST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4000;

export class Connection {
  constructor({ onMessage, onState }) {
    this.onMessage = onMessage;
    this.onState = onState;
    this.wait = SHORTEST_WAIT_MS;
    this.open();
  }

  open() {
    // What is after # never leaves the browser but in this request.
    const token = location.hash.slice(1);
    const query = token ? `?token=${encodeURIComponent(token)}` : "";
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/socket${query}`);
    this.socket.onopen = () => {
      this.wait = SHORTEST_WAIT_MS;
      this.onState("open");
    };
    this.socket.onmessage = ({ data }) => {
      let message;
      try {
        message = JSON.parse(data);
      } catch {
        return;
      }
      this.onMessage(message);
    };
    this.socket.onclose = () => {
      this.onState("lost");
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
    };
  }

  send(wish) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(wish));
  }
}
