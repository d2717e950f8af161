// What a page keeps of a result that changes: its rows as they are now, and its last changes. Both are bounded.
export const KEPT = 10000;

const symbols = { INSERT: "+I", UPDATE_BEFORE: "-U", UPDATE_AFTER: "+U", DELETE: "-D" };

export class Changes {
  constructor(kept = KEPT) {
    this.kept = kept;
    this.count = 0;
    /** Rows that were too many to be kept. */
    this.dropped = 0;
    this.log = [];
    this.rows = new Map();
    this.places = new Map();
    this.next = 0;
    this.free = null;
  }

  apply({ kind, fields }) {
    this.count += 1;
    this.log.push({ place: this.count, kind: symbols[kind] ?? kind, fields });
    // Not one at a time: the front of a long list is costly to cut.
    if (this.log.length > this.kept * 1.5) this.log = this.log.slice(-this.kept);
    const row = JSON.stringify(fields);
    if (kind === "UPDATE_BEFORE" || kind === "DELETE") this.takeBack(row, kind === "UPDATE_BEFORE");
    else this.add(row, fields, kind === "UPDATE_AFTER");
  }

  add(row, fields, updates) {
    let place = this.next;
    let version = 0;
    if (updates && this.free !== null) {
      place = this.free;
      version = this.rows.get(place).version + 1;
      this.free = null;
    } else this.next += 1;
    this.rows.set(place, { place, version, fields });
    if (!this.places.has(row)) this.places.set(row, []);
    this.places.get(row).push(place);
    if (this.rows.size > this.kept) this.dropOldest();
  }

  takeBack(row, keepsPlace) {
    const found = this.places.get(row);
    // One that was dropped.
    if (!found) return;
    const place = found.pop();
    if (!found.length) this.places.delete(row);
    if (!keepsPlace) { this.rows.delete(place); return; }
    // The row that replaces it comes next, and has its place.
    if (this.free !== null) this.rows.delete(this.free);
    this.free = place;
  }

  dropOldest() {
    const [place, { fields }] = this.rows.entries().next().value;
    this.rows.delete(place);
    this.dropped += 1;
    if (place === this.free) { this.free = null; return; }
    const row = JSON.stringify(fields);
    const left = this.places.get(row).filter((one) => one !== place);
    if (left.length) this.places.set(row, left); else this.places.delete(row);
  }

  table() {
    return [...this.rows.values()].filter((row) => row.place !== this.free);
  }
}
