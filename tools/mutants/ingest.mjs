/** How a message enters, what is kept of it and for how long, and what is put aside. */
import { weaken } from './mutant.mjs'

export const INGEST = [
  ...weaken('src/contract/streams.ts', 'test/contract/streams.test.ts', [
    [
      'a user whose name begins another’s has no part in it',
      'stream.startsWith(`${userStream(userId)}/`)',
      'stream.startsWith(userStream(userId))',
    ],
    [
      'the relay alone writes into the streams of commands',
      'RESERVED.test(stream)',
      'false',
      'test/memory/ingest.test.ts',
    ],
  ]),
  ...weaken('src/contract/history.ts', 'test/memory/ingest.test.ts', [
    [
      'a stream name holds no characters that ids may not hold',
      String.raw`[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]`,
      String.raw`[^\p{Cc}]`,
    ],
    [
      'a stream name holds no control characters',
      String.raw`[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]`,
      String.raw`[^\p{Cf}\p{Cs}\p{Zl}\p{Zp}]`,
    ],
  ]),
  ...weaken('src/contract/ingest.ts', 'test/memory/ingest.test.ts', [
    [
      'a stale instance is fenced',
      `if (!(await connections.isCurrentInstance(message))) throw new Refusal('stale_instance')`,
      '',
    ],
    [
      'a message under way in another stream is another',
      'JSON.stringify([stream, message_id])',
      'JSON.stringify([message_id])',
      'test/contract/defences.test.ts',
    ],
    ['equal messages under way are one', 'if (first) return { ...(await first), isNew: false }', ''],
    ['what has ended is under way no longer', 'inFlight.delete(identity)', ''],
    [
      'a failed append gives its claim back',
      'if (isFirst) await Promise.resolve(deduplicator.release(claim)).catch(() => {})',
      '',
      'test/contract/defences.test.ts',
    ],
    [
      'only who claimed gives a claim back',
      'if (isFirst) await Promise.resolve(deduplicator',
      'await Promise.resolve(deduplicator',
      'test/contract/defences.test.ts',
    ],
  ]),
  ...weaken('src/contract/site-messages.ts', 'test/cooperative-site/ingest.test.ts', [
    ['a site’s stream has one spelling', 'encodeURIComponent(siteId) === segment && ', ''],
  ]),
  ...weaken('src/cooperative-site/events/ingest.ts', 'test/cooperative-site/ingest.test.ts', [
    [
      'a stream is always below its host',
      'const stream = canonicalStream(host.user_id, message.stream)',
      'const stream = message.stream',
    ],
    [
      'a payload that cannot be written is refused',
      'if (isDeeperThan(message.payload, JSON_DEPTH)) throw',
      'if (false) throw',
    ],
    [
      'a host publishes to sites of its own',
      `if (site.owner !== host.user_id) return { reason: 'owner_mismatch' }`,
      '',
    ],
    [
      'a host publishes what its site has declared',
      `if (site.event_names.length > 0 && !site.event_names.includes(name.data)) return { reason: 'event_not_allowed' }`,
      '',
    ],
    [
      'a message under another client’s id is told to nobody',
      'if (duplicate && first !== null && first.client_id !== message.client_id)',
      'if (false)',
      ['test/cooperative-site/ingest-again.test.ts', 'test/cooperative-site/ingest.test.ts'],
    ],
    [
      'what was given up is not published later',
      'signal.throwIfAborted()',
      '',
      ['test/cooperative-site/ingest-again.test.ts', 'test/cooperative-site/ingest.test.ts'],
    ],
    [
      'a bus that did not answer may have published',
      `error instanceof Refusal && error.code !== 'timeout' && error.outcome !== 'unknown'`,
      'error instanceof Refusal',
      ['test/cooperative-site/ingest-again.test.ts', 'test/cooperative-site/ingest.test.ts'],
    ],
    [
      'a refused message is not projected',
      'if (!accepted) return answer({ published: false, not_published_reason: null })',
      '',
    ],
  ]),
  ...weaken('src/cooperative-site/events/publish-once.ts', 'test/cooperative-site/ingest-again.test.ts', [
    ['an event is published once', 'if (known) {', 'if (false) {'],
    [
      'an event whose publication failed can be published',
      'memory.forget(key)\n    throw error',
      'throw error',
      'test/contract/defences.test.ts',
    ],
    [
      'what is remembered of a bus is bounded',
      'for (let left = this.#shares.excess(place); left !== undefined; left = this.#shares.excess(place)) this.forget(left)',
      '',
      'test/contract/defences.test.ts',
    ],
  ]),
  ...weaken('src/memory/history/facility.ts', 'test/memory/history.test.ts', [
    [
      'the message of another user is another one',
      '${message_id}\\n${user_id}\\n${stream}',
      '${message_id}\\n${stream}',
    ],
    ['a message is retained once', 'if (before) return { message: show(before), isNew: false }', ''],
    [
      'a message is retained once, however long its payload takes',
      'const duplicate = known.get(keyOf(input))',
      'const duplicate = undefined as Kept | undefined',
    ],
    ['a stream is bounded', 'if (state.messages.size > bounds.maxPerStream) evict(', 'if (false) evict('],
    ['messages are bounded', 'makeRoom(held, kept.place)', ''],
    ['payloads aside are bounded', 'if (kept.spilled) makeRoom(spilled, kept.spilled)', ''],
    ['a message larger than a share is refused', '!held.fits(size) || (!isInline && !spilled.fits(bytes))', 'false'],
    ['numbers of a stream go on after it was emptied', 'lastSequence: emptied.recall(name)', 'lastSequence: 0'],
    [
      'a payload of a message that left is deleted',
      'if (message.externalized) spilling.discard(message.externalized.ref)',
      '',
    ],
  ]),
  ...weaken('src/memory/history/inspector.ts', 'test/memory/history.test.ts', [
    ['one answer carries so much text', 'if (bytes > HISTORY_BYTES && first < newest.length) break', ''],
  ]),
  ...weaken(
    'src/fair-share/fair-share.ts',
    ['test/contract/shares.test.ts'],
    [
      ['a user holds so many bytes', ' || isOver(holder.bytes, bytesPerUser)', ''],
      ['a user holds so many entries', 'isOver(holder.entries, entriesPerUser) || ', ''],
      ['what must go for their number goes from whoever has most', 'this.#byEntries.top(sparing)', 'holder'],
      ['what must go for its bytes goes from whoever holds most', 'this.#byBytes.top(sparing)', 'holder'],
      ['a user who has just come stays', 'holder.entries === 1 ? holder : undefined', 'undefined'],
    ],
  ),
  ...weaken('src/contract/history-bounds.ts', 'test/memory/history.test.ts', [
    [
      'a message fits into a record',
      'inlineBytes: [RECORD_BYTES, RECORD_BYTES]',
      'inlineBytes: RECORD_BYTES',
      'test/contract/defences.test.ts',
    ],
  ]),
  ...weaken('src/memory/deduplicator.ts', 'test/memory/deduplicator.test.ts', [
    ['a claim that has run out is not given back', ' || entry.touchedAt + ttlMs <= clock.steady()', ''],
    ['a claim runs out', 'if (known && known.touchedAt + ttlMs > time) {', 'if (known) {'],
    ['claims are bounded', 'if (left) {', 'if (false) {'],
    [
      'a claim of another stream is another',
      "keyOf = ({ user_id, stream = '', message_id }: ClaimInput) => `${user_id}\\n${stream}\\n${message_id}`",
      'keyOf = ({ user_id, message_id }: ClaimInput) => `${user_id}\\n${message_id}`',
    ],
    ['a claim given back is not counted', 'counters.accepted--', ''],
  ]),
  ...weaken(
    'src/spill/hydration.ts',
    ['test/memory/history.test.ts'],
    [
      [
        'a payload of another length is not believed',
        `if (utf8Length(text) !== bytes) return { payload: null, hydration: 'error' }`,
        '',
      ],
      ['one answer carries so many payloads', '|| externalized.bytes > budget)', ')'],
      ['one payload is so large', 'externalized.bytes > HYDRATION_BYTES ||', ''],
      [
        'a store that does not answer costs a payload',
        'await raceAbort(spill.get(ref, { signal, maxBytes: HYDRATION_BYTES }), signal)',
        'await spill.get(ref, { signal, maxBytes: HYDRATION_BYTES })',
      ],
    ],
  ),
  ...weaken('src/spill/spilling.ts', 'test/memory/history.test.ts', [
    [
      'a payload that was given up and put all the same is deleted',
      '() => discard(ref),\n          () => {},',
      '() => {},\n          () => {},',
      'test/contract/defences.test.ts',
    ],
    [
      'a payload has so long to be put',
      'await runWithin(put, { ms: spillMs, late })',
      'await put(new AbortController().signal)',
      'test/contract/defences.test.ts',
    ],
    [
      'a payload that was not put is deleted',
      'discard(ref)\n        putting?.then(',
      'putting?.then(',
      'test/contract/defences.test.ts',
    ],
  ]),
  ...weaken('src/memory/history/spill-store.ts', 'test/memory/history.test.ts', [
    ['texts are bounded in bytes', 'while (total + bytes > maxBytes && queue.oldest) drop(queue.oldest)', ''],
  ]),
  ...weaken('src/spill/file-bucket.ts', 'test/redis/spill.test.ts', [
    ['a key is a file name', '!NAME.test(key) || key.length > NAME_BYTES', 'false'],
    ['an object that is too large is not read', '(await stat(path)).size > maxBytes', 'false'],
  ]),
  ...weaken('src/spill/object-store.ts', 'test/redis/spill.test.ts', [
    ['a reference names an object below the prefix', 'prefix + encodePart(ref)', 'prefix + ref'],
    ['who names no bound has one', 'maxBytes = HYDRATION_BYTES', 'maxBytes = Number.POSITIVE_INFINITY'],
    [
      'what cannot be read is a rejection',
      'get: async (ref, options: Partial<ReadOptions> = {})',
      'get: (ref, options: Partial<ReadOptions> = {})',
    ],
    ['what cannot be put is a rejection', 'put: async (ref, body)', 'put: (ref, body)'],
    ['what cannot be deleted is a rejection', 'delete: async (ref)', 'delete: (ref)'],
  ]),
]
