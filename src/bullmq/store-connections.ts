/** What a store says of its connections: by it workers are found, which bear the name of their queue. */

/** What is said of one connection, as BullMQ tells it. */
export type Connected = Readonly<Record<string, string>>

/** What stores have told for one request. */
export interface Told {
  /** Those that have a name, as the store of a client told of them. */
  readonly lists: Map<object, Promise<readonly Connected[]>>
  /** How many connections they told of, whosoever. */
  count: number
}

/** What the store of `client` says, which is asked once. */
export function connectionsOf(told: Told, client: object, ask: () => Promise<string>): Promise<readonly Connected[]> {
  const known = told.lists.get(client)
  if (known) return known
  const list = ask().then((text) => {
    const lines = text.split('\n')
    told.count += lines.length
    return lines.map(toConnected).filter(({ rawname }) => rawname !== '')
  })
  told.lists.set(client, list)
  return list
}

/** What stands before the name of a worker that has one. */
const NAMED = ':w:'

/** @param rawname The queue's prefix, its name in base64, and the worker's own name if it has one. */
export function workerName(rawname: string): string | null {
  const at = rawname.indexOf(NAMED)
  return at < 0 ? null : rawname.slice(at + NAMED.length)
}

/** Those of `connections` that bear the name of a worker of `queue`. */
export function workersAmong(
  connections: readonly Connected[],
  queue: { readonly name: string; toKey(part: string): string },
): Connected[] {
  const prefix = queue.toKey('').slice(0, -`${queue.name}:`.length)
  const unnamed = prefix + btoa(String.fromCharCode(...new TextEncoder().encode(queue.name)))
  return connections.filter(({ rawname = '' }) => rawname === unnamed || rawname.startsWith(unnamed + NAMED))
}

/** @param line Words of the form `key=value`. */
function toConnected(line: string): Connected {
  const words = line
    .trim()
    .split(' ')
    .map((word): [string, string] => {
      const at = word.indexOf('=')
      return [word.slice(0, at), word.slice(at + 1)]
    })
  const { name: rawname = '', ...rest }: Connected = Object.fromEntries(words)
  return { ...rest, rawname }
}
