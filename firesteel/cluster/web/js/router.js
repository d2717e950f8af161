// Addresses after the #: what is shown can be bookmarked and sent to others.
import { signal } from "./ui.js";

const read = () => {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
};

export const route = signal(read());
addEventListener("hashchange", () => { route.value = read(); });

export const href = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const go = (...parts) => { location.hash = href(...parts); };
