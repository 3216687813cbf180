/**
 * Receives the messages of each shard to this node. They are published on a channel, and stay in a stream until the node has
 * read them. Each has the id of the one before, so that the node detects a lost message.
 */
import { listen } from '../store/listener.js'
import type { Store } from '../store/store.js'

interface InboxesOptions {
  store: Store
  onMessage: (message: string, shard: number) => void
  /** Called when a message of a shard was missed. A pass reads it from the stream. */
  onGap: (shard: number) => void
  onError: (error: unknown) => void
}

const NOTHING_HEARD = '0-0'

/** Returns whether an entry id of a stream is after another. */
function isAfter(id: string, other: string): boolean {
  const [ms = 0, sequence = 0] = id.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}

export type Inboxes = ReturnType<typeof createInboxes>

export function createInboxes({ store, onMessage, onGap, onError }: InboxesOptions) {
  /** By shard: the channel, and the id of the last message that was read. */
  const inboxes = new Map<number, { channel: string; heard: string }>()
  const listening = listen(store, (isUp) => {
    if (isUp) for (const shard of inboxes.keys()) onGap(shard)
  })

  function read(shard: number, id: string, message: string) {
    const inbox = inboxes.get(shard)
    if (!inbox || !isAfter(id, inbox.heard)) return
    inbox.heard = id
    for (const one of message.split('\x02')) onMessage(one, shard)
  }

  function hear(shard: number, wakeUp: string) {
    const [before = '', rest = ''] = wakeUp.split('\x03')
    const cut = rest.indexOf('\x02')
    const id = rest.slice(0, cut)
    const heard = inboxes.get(shard)?.heard ?? NOTHING_HEARD
    if (before === heard) read(shard, id, rest.slice(cut + 1))
    else if (isAfter(id, heard)) onGap(shard)
  }

  return {
    heard: (shard: number) => inboxes.get(shard)?.heard ?? NOTHING_HEARD,
    isHeard: (shards: number) =>
      inboxes.size >= shards && [...inboxes.values()].every(({ channel }) => listening.isHearing(channel)),

    /** Subscribes to the messages for `incarnation` in a shard, and unsubscribes from those for the former one. */
    open(shard: number, incarnation: string) {
      const former = inboxes.get(shard)
      if (former) listening.unsubscribe(former.channel).catch(onError)
      const channel = store.key(shard, 'delivery', 'wake', incarnation)
      inboxes.set(shard, { channel, heard: NOTHING_HEARD })
      listening
        .subscribe(shard, channel, (message) => {
          if (inboxes.get(shard)?.channel === channel) hear(shard, message)
        })
        .catch(onError)
    },

    /** Processes the stream entries that a pass has read. Each has its id and its messages. */
    readAll(shard: number, entries: readonly string[]) {
      for (const entry of entries) {
        const cut = entry.indexOf('\x02')
        read(shard, entry.slice(0, cut), entry.slice(cut + 1))
      }
    },

    close: () => listening.close(),
  }
}
