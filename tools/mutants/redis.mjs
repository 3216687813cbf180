/** The shared store itself, and what a reader of it believes. */
import { weaken } from './mutant.mjs'

const DEFENCES = 'test/redis/defences.test.ts'
const HOSTILE = 'test/redis/hostile.test.ts'
const WRITERS = 'test/redis/hostile-writers.test.ts'

export const REDIS = [
  ...weaken('src/redis/event-bus/scripts.ts', 'test/redis/last-events.test.ts', [
    ['what is noted for sites keeps nobody from publishing', "redis.pcall('HLEN', last)", "redis.call('HLEN', last)"],
    ['what is noted for sites is bounded', 'if noted >= ${LAST_MAX} and', 'if false and'],
    ['what is noted for sites is short', ' and #published_at <= 32', ''],
  ]),
  ...weaken('src/contract/ids.ts', 'test/redis/keys.test.ts', [
    [
      'an id ends no part of a key',
      `.replace(
    /[*!'()~.]/g,`,
      `.replace(
    /[*!'()~]/g,`,
    ],
  ]),
  ...weaken('src/redis/store/keys.ts', 'test/redis/keys.test.ts', [
    [
      'a deployment id names one deployment',
      `if (typeof deploymentId !== 'string' || !DEPLOYMENT.test(deploymentId))`,
      'if (false)',
      HOSTILE,
    ],
    [
      'scripts spell keys as JavaScript does',
      `known = string.gsub(part, '[^%w_-]',`,
      `known = string.gsub(part, '[^%w_.-]',`,
      [HOSTILE, 'test/redis/keys.test.ts'],
    ],
  ]),
  ...weaken('src/redis/store/subscriber.ts', 'test/redis/subscriber-link.test.ts', [
    [
      'subscriptions over ioredis are renewed where a refusal is heard',
      '[{ autoResubscribe: false }]',
      '[{ autoResubscribe: true }]',
    ],
    [
      'subscriptions over ioredis are renewed',
      `if (kind === 'ioredis') for (const channel of channels)`,
      'for (const channel of [])',
    ],
    [
      'what was unsubscribed meanwhile is not renewed',
      'if (wanted.has(channel)) channels.add(channel)',
      'channels.add(channel)',
    ],
    [
      'who subscribes again at once is not deaf',
      'own.sUnsubscribe(channel, listener)',
      'own.sUnsubscribe(channel, undefined as never)',
      'test/redis/subscriber.test.ts',
    ],
    [
      'a subscriber that is closed leaves no connection that is just being made anew',
      `      own.on('ready', end)\n`,
      '',
      'test/redis/subscriber-close.test.ts',
    ],
    [
      'a subscriber that is closed leaves no nodes that are just being looked for',
      '      connected.then(end, () => {})\n',
      '',
      'test/redis/subscriber-close.test.ts',
    ],
    [
      'a client that has ended by itself can be closed',
      '    try {\n      own.destroy()\n    } catch {',
      '    own.destroy()\n    try {\n    } catch {',
      ['test/redis/subscriber-close.test.ts', 'test/redis/listener-links.test.ts'],
    ],
  ]),
  ...weaken('src/redis/store/fence.ts', 'test/redis/fence.test.ts', [
    ['a write that comes too late does nothing', 'if stored_now >= tonumber(ends) then return', 'if false then return'],
    [
      'a clock heard late makes a fence earlier',
      'const heardAt = performance.now()\n    const known = {',
      'const heardAt = performance.now() - 1_000\n    const known = {',
    ],
    ['a late arrival says nothing of an earlier one', 'throw resends ? unsure(again) : again', 'throw again'],
    ['a write that was refused as late is tried once more', 'if (!(error instanceof Late)) throw error', 'throw error'],
    [
      'a clock is trusted for so long',
      'if (known && performance.now() - known.heardAt < TRUSTED_MS) return known',
      'if (known) return known',
    ],
    ['a question that somebody else gave up is asked anew', 'if (!isGivenUp) throw error', 'throw error'],
    ['what failed before a write was not run', 'throw beforeWrite(error)', 'throw error'],
  ]),
  ...weaken('src/redis/store/prelude.ts', WRITERS, [
    [
      'half a deployment with another number of shards writes nothing',
      `if redis.pcall('GET', K('shards')) ~= shards then return redis.error_reply('SHARDS are other ones') end`,
      '',
      'test/redis/shard-count.test.ts',
    ],
    [
      'a row that no script wrote is none',
      `if not good or type(state) ~= 'table' then return nil end`,
      '',
      'test/redis/table-rows.test.ts',
    ],
    ['a table sweeps what is due', `for i = 1, #gone do drop(t, gone[i]) end`, '', 'test/redis/table-rows.test.ts'],
    [
      'a user without rows leaves the index',
      `if redis.call('EXISTS', K(t, user[1], user[2])) == 0 then redis.call('ZREM', K(t, 'users'), user[2]) end`,
      '',
      'test/redis/table-rows.test.ts',
    ],
  ]),
  ...weaken('src/redis/store/shard-count.ts', 'test/redis/shard-count.test.ts', [
    ['two halves of a deployment are told of each other', 'if (own !== undefined && own !== count)', 'if (false)'],
    [
      'a number of shards is one',
      'if (stored === null || !Number.isSafeInteger(count) || count < 1 || count > SHARDS_MAX)',
      'if (stored === null)',
      ['test/redis/shard-count.test.ts', WRITERS],
    ],
    ['a reader looks again at the number of shards', 'if (String(stored) !== String(known)) known = undefined', ''],
    ['a shard that lost its number is given it back', 'if (shard !== 0) await claimIn(shard)', ''],
  ]),
  ...weaken('src/redis/store/commands.ts', 'test/redis/store-commands.test.ts', [
    ['a refusal of what was sent twice says nothing of the first time', 'port.lostLinks() === lost', 'true || lost'],
    ['an answer that came while the process stood still is one', 'if (isSent) timer = setTimeout(late)', 'if (false);'],
  ]),
  ...weaken('src/redis/store/listener.ts', 'test/redis/listener.test.ts', [
    [
      'who leaves a listener leaves the others their channels',
      'if (!hears?.delete(onLink) || hears.size > 0) return',
      'if (!hears?.delete(onLink)) return',
    ],
    ['a deaf listener is opened anew', 'some(({ isLost }) => isLost)', 'some(() => false)'],
    [
      'who waits for a listener waits for two seconds at most',
      'runWithin(async () => renewing, { ms: RENEWED_MS, late: () => undefined }).catch(() => {})',
      'Promise.resolve(runWithin && RENEWED_MS ? renewing : undefined)',
      'test/redis/listener-links.test.ts',
    ],
    [
      'a subscription is given the time of its host’s commands',
      '        await subscriptions.subscribe(channel, store.commandTimeoutMs)',
      '        await subscriptions.subscribe(channel, 2_000)',
      'test/redis/listener-links.test.ts',
    ],
  ]),
  ...weaken('src/redis/store/echo.ts', 'test/redis/listener-links.test.ts', [
    [
      'an echo is missed once while none can be sent',
      '        // The next one is asked for',
      '        misses++\n        // The next one is asked for',
    ],
  ]),
  ...weaken('src/redis/store/subscriptions.ts', 'test/redis/listener.test.ts', [
    [
      'a listener opened anew hears what was heard before',
      'Promise.allSettled(batch.map(subscribe))',
      'Promise.allSettled(batch.map(() => subscriber))',
    ],
    [
      'what is heard again after it had failed is told of',
      'if (await subscribeMissing()) onLink(true)',
      'await subscribeMissing()',
      'test/redis/listener-links.test.ts',
    ],
    [
      'a first subscription is told of to nobody else',
      '      starting.add(channel)\n',
      '',
      'test/redis/listener-links.test.ts',
    ],
  ]),
  ...weaken('src/redis/store/script.ts', 'test/redis/shard-count.test.ts', [
    [
      'a store that lost its number of shards is mended',
      'await store.confirmShards(shard)\n      return attempt()',
      'throw error',
    ],
    [
      'a script that frees memory runs in a full store',
      String.raw`freesMemory ? '#!lua flags=allow-oom\n' : ''`,
      `''`,
      'test/redis/full-store.test.ts',
    ],
    [
      'a store that lost its scripts gets them again',
      `if (error instanceof UnknownScript) return command(['EVAL', script.source, ...rest()])`,
      '',
      ['test/redis/store.test.ts', 'test/redis/faults.test.ts'],
    ],
  ]),
  ...weaken('src/redis/store/reply.ts', 'test/redis/reply.test.ts', [
    [
      'a script that failed half-way is unknown',
      'isInside ? BEFORE_FIRST_WRITE.test(message) : NOT_RUN.test(message)',
      'NOT_RUN.test(message)',
      ['test/redis/reply.test.ts', 'test/redis/fence.test.ts'],
    ],
    [
      'words of a store are found in what a client wraps',
      `for (const inner of [cause, lastNodeError, ...(Array.isArray(errors) ? errors : [])]) {`,
      'for (const inner of [] as unknown[]) {',
    ],
    ['errors within errors end', 'if (depth === 0 || error === null', 'if (error === null'],
    [
      'a count that no record can carry is none',
      'return Number.isSafeInteger(number) && number > 0 ? number : 0',
      'return number',
    ],
  ]),
  ...weaken('src/async/semaphore.ts', 'test/async/semaphore.test.ts', [
    ['who waits is bounded', 'if (size + itsSize > sizes) return undefined', ''],
    ['so many run at a time', 'while (first && running < permits) {', 'while (first) {'],
    ['who gave up is not started', 'waiter.isWaiting = false\n    size -= waiter.size\n', 'size -= waiter.size\n'],
  ]),
  ...weaken('src/redis/store/idempotence.ts', 'test/redis/second-arrival.test.ts', [
    ['a write that arrives twice is done once', 'if before then', 'if false then'],
    [
      'a refusal that arrives twice is one',
      'local reply = refused and { refused = refused } or { answer = answer }',
      'if refused then return answer end local reply = { answer = answer }',
    ],
  ]),
  ...weaken('src/redis/table/rows.ts', DEFENCES, [
    ['rows longer than a record are not parsed', 'if (value.length > ROW_BYTES)', 'if (false)'],
    [
      'a row is what its schema says',
      'if (!read.success) return faultOfRow',
      'if (false) return faultOfRow',
      'test/redis/bad-rows.test.ts',
    ],
    [
      'a row stands under its own id',
      `table.idOf(read.data) === id ? { row: read.data } : whole('is stored under another id')`,
      '{ row: read.data }',
      HOSTILE,
    ],
    ['a page counts what it leaves out', 'isBad: value === FOREIGN', 'isBad: false', HOSTILE],
    [
      'a key of another type is an empty index',
      'if (!(error instanceof WrongType)) throw error',
      'throw error',
      HOSTILE,
    ],
  ]),
  ...weaken('src/redis/table/users.ts', DEFENCES, [
    [
      'what a user has is what its records say',
      '.filter((record) => (record as { user_id?: string }).user_id === user_id)',
      '',
    ],
    [
      'a user whose rows have run out is none',
      `if (read('ZCOUNT', K(t, 'live', user), '(' .. at, '+inf') or 0) > 0 then`,
      'if true then',
      'test/redis/expired-entries.test.ts',
    ],
    [
      'users that are looked at are bounded',
      'and examined < bound do',
      'do',
      ['test/redis/expired-entries.test.ts', 'test/redis/one-truth.test.ts'],
    ],
  ]),
  ...weaken('src/redis/table/pages.ts', DEFENCES, [
    [
      'a page holds what its filter says, whatever the index does',
      'wanted.every(([field, value]) => record[field as keyof R] === value)',
      'true',
    ],
    [
      'a token of a page is one that was handed out',
      'if (!isScore || shard < first || shard > last) throw',
      'if (false) throw',
      'test/redis/pages.test.ts',
    ],
    [
      'a page looks at so many entries',
      'if (examined >= bound) return more()',
      '',
      ['test/redis/expired-entries.test.ts', 'test/redis/one-truth.test.ts'],
    ],
  ]),
  ...weaken('src/redis/contexts/inspector.ts', 'test/redis/contexts.test.ts', [
    [
      'a context counts in a window of its own user and client',
      'context?.window_id === window_id && isOf(owner, context)',
      'context?.window_id === window_id',
      ['test/redis/browser-windows.test.ts', 'test/redis/one-truth.test.ts', 'test/redis/contexts.test.ts'],
    ],
    [
      'a window that a lost shard may have a part of has no counts',
      'for (const lost of asked.values()) for (const window_id of lost) counts.delete(window_id)',
      '',
      'test/redis/lost-shard.test.ts',
    ],
    [
      'a window that was not read to its end has no counts',
      'if (isCut || isBad) counts.delete(window_id)',
      '',
      ['test/redis/expired-entries.test.ts', 'test/redis/one-truth.test.ts', 'test/redis/contexts.test.ts'],
    ],
  ]),
]
