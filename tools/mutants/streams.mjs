/** Live streams of viewers, the bus that they read, and the registries of sites and sessions. */
import { weaken } from './mutant.mjs'

const DEFENCES = 'test/cooperative-site/defences.test.ts'
const BUS = 'test/cooperative-site/event-bus.test.ts'

export const STREAMS = [
  ...weaken('src/cooperative-site/sessions/grants.ts', 'test/cooperative-site/event-stream-permission.test.ts', [
    [
      'a change during a read is not forgotten',
      'if (!changed) freshAt = held.startedAt\n        } while (changed && held.holders.size > 0)',
      'freshAt = held.startedAt\n        } while (false)',
      DEFENCES,
    ],
    [
      'what was read before a change is not fresh',
      'changed = true\n      freshAt = Number.NEGATIVE_INFINITY',
      'changed = true',
      'test/cooperative-site/defences-calls.test.ts',
    ],
    [
      'a stream ends with the session that it was opened in',
      'if (siteStream(session.owner, session.site_id) !== topic) return',
      'if (false) return',
      'test/cooperative-site/event-stream-end.test.ts',
    ],
    ['a grant belongs to a principal', 'viewer.user_id, viewer.key ?? null]', 'viewer.user_id]', DEFENCES],
    [
      'a stream goes on while its policy answers true',
      `=== true ? null : 'policy_revoked'`,
      `? null : 'policy_revoked'`,
      DEFENCES,
    ],
    ['a grant is so old', 'clock() < freshAt + RECHECK_MS', 'freshAt > 0'],
    [
      'a session that ends takes its grant',
      ' && now() < expiresAt',
      '',
      ['test/cooperative-site/event-stream-permission.test.ts', 'test/cooperative-site/event-stream-end.test.ts'],
    ],
    [
      'a site that changed hands ends its streams',
      '!site || site.owner !== session.owner',
      '!site',
      ['test/cooperative-site/event-stream-permission.test.ts', 'test/cooperative-site/event-stream-end.test.ts'],
    ],
    [
      'streams whose permission nobody knows end',
      `if (clock() - confirmedAt >= UNKNOWN_MAX_MS) end('shutdown')`,
      '',
      ['test/cooperative-site/event-stream-permission.test.ts', 'test/cooperative-site/event-stream-end.test.ts'],
    ],
    ['so many permissions are read at once', 'reads >= READS_MAX ||', ''],
    ['a wall clock set back suspends no permission', 'const clock = steady(now)', 'const clock = now', DEFENCES],
    [
      'a session that is over ends its streams',
      `if (session?.state !== 'active' && session?.state !== 'suspended') return 'session_closed'`,
      `if (!session) return 'session_closed'`,
      ['test/cooperative-site/event-stream-permission.test.ts', 'test/cooperative-site/event-stream-end.test.ts'],
    ],
  ]),
  ...weaken(
    'src/cooperative-site/sessions/stream.ts',
    [
      'test/cooperative-site/event-stream-permission.test.ts',
      'test/cooperative-site/event-stream-release.test.ts',
      'test/cooperative-site/event-stream-resume.test.ts',
    ],
    [
      [
        'nothing is written without a fresh permission',
        'else if (grant.isFresh) writeNext()',
        'else if (grant) writeNext()',
      ],
      [
        'a client that leaves lets go of its subscription',
        `request.signal.addEventListener('abort', leave, { once: true })`,
        '',
      ],
      [
        'a stream that ends lets go of its subscription',
        'subscription.close()\n    grant.release(holder)',
        'grant.release(holder)',
      ],
      [
        'a stream that ends lets go of its grant',
        'subscription.close()\n    grant.release(holder)',
        'subscription.close()',
      ],
      [
        'a position that lies ahead is none',
        'seen?.epoch !== current.epoch || seen.seq > current.seq',
        'seen?.epoch !== current.epoch',
      ],
      [
        'a position of another epoch is none',
        'seen?.epoch !== current.epoch || seen.seq > current.seq',
        'seen === null || seen.seq > current.seq',
      ],
    ],
  ),
  ...weaken(
    'src/cooperative-site/sessions/event-frames.ts',
    ['test/cooperative-site/event-stream.test.ts', 'test/cooperative-site/event-stream-resume.test.ts'],
    [
      [
        'an event leaves as its schema reads it',
        'SiteEvent.parse(events[next])',
        'events[next] as SiteEvent',
        'test/cooperative-site/defences.test.ts',
      ],
      [
        'one write carries so much',
        'next < events.length && text.length < CHUNK_LENGTH',
        'next < events.length',
        ['test/cooperative-site/event-stream.test.ts', 'test/cooperative-site/event-stream-release.test.ts'],
      ],
      ['a position is spelled in one way', String.raw`!/^(0|[1-9][0-9]{0,15})$/.test(seq) || `, ''],
    ],
  ),
  ...weaken('src/cooperative-site/sessions/streams.ts', 'test/cooperative-site/subscriptions.test.ts', [
    ['a stream that has ended is shown no more', '          hide()\n', ''],
    ['who is told of streams keeps none of them', '      onError?.(error)\n      return () => {}', '      throw error'],
  ]),
  ...weaken('src/cooperative-site/sessions/streams.ts', 'test/cooperative-site/event-stream-end.test.ts', [
    [
      'a relay that is closed opens no stream',
      `if (closed) stream.end('shutdown')`,
      '',
      ['test/cooperative-site/event-stream-end.test.ts', 'test/cooperative-site/event-stream-release.test.ts'],
    ],
    ['heartbeats go on when the wall clock is set back', 'const clock = steady(now)', 'const clock = now', DEFENCES],
  ]),
  ...weaken('src/event-ring/topic.ts', 'test/redis/event-bus.test.ts', [
    [
      'what was published from here is not replayed here',
      'if (epoch === this.epoch && seq > this.sent) this.sent = seq',
      '',
    ],
    [
      'nor where its place is not known yet',
      'if (this.unplaced && epoch !== this.epoch) {',
      'if (false) {',
      'test/redis/local-topic.test.ts',
    ],
    [
      'what was published in another epoch counts for nothing in the first',
      'if (epoch !== this.epoch) this.sent = 0',
      '',
      'test/redis/local-topic.test.ts',
    ],
    [
      'nor in a later one',
      'this.first = seq + 1\n      this.sent = 0',
      'this.first = seq + 1',
      'test/redis/local-topic.test.ts',
    ],
  ]),
  ...weaken('src/event-ring/topic.ts', BUS, [
    [
      'the ring reads no event older than its size',
      'seq > this.head - this.size ? slot',
      'seq >= this.head - this.size ? slot',
      'test/cooperative-site/defences.test.ts',
    ],
    ['an event that is not ahead is ignored', 'event.seq <= this.head || ', ''],
    ['a topic that is closed is held by no signal', 'for (const release of this.releases) release()', ''],
    [
      'a wake that throws keeps nobody else from being woken',
      '        } catch (error) {',
      '        } catch (error) {\n          throw error',
      'test/cooperative-site/event-bus-wakes.test.ts',
    ],
    [
      'an unread topic keeps no events',
      'this.readers--\n    if (this.readers > 0) return\n    this.forget()',
      'this.readers--\n    if (this.readers > 0) return',
    ],
  ]),
  ...weaken('src/event-ring/cursor.ts', 'test/redis/event-bus.test.ts', [
    [
      'nothing waits for a reader that has to wait itself',
      'Math.max(0, this.ring.head + 1 - this.oldest())',
      'this.ring.head + 1 - this.oldest()',
    ],
    [
      'a reader without a place knows what it is not to read',
      'this.epoch === epoch ? Math.max(this.ahead, first) : first',
      'first',
      'test/redis/local-topic.test.ts',
    ],
  ]),
  ...weaken('src/event-ring/cursor.ts', BUS, [
    [
      'a reader that lags is told what it lost',
      'Math.max(this.ahead, this.ring.head - this.ring.size + 1)',
      'Math.max(this.ahead, this.ring.head - this.ring.size)',
      [DEFENCES, BUS],
    ],
    [
      'another epoch is a gap',
      'if (this.epoch !== ring.epoch) {',
      'if (false) {',
      [BUS, 'test/redis/event-bus.test.ts'],
    ],
    ['an aborted reader ends', `signal.addEventListener('abort', stop, { once: true })`, ''],
  ]),
  ...weaken('src/memory/cooperative/event-bus.ts', BUS, [
    ['unread topics are bounded', 'if (unread.size <= UNREAD_MAX) return', 'if (unread.size >= 0) return'],
    [
      'as many unread topics are kept as may be',
      'if (unread.size <= UNREAD_MAX) return',
      'if (unread.size < UNREAD_MAX) return',
    ],
    [
      'an unread topic that goes is of whoever has most',
      `const [oldest = name] = unreadOf.get(holders.fullest ?? '') ?? []`,
      'const [oldest = name] = unread.keys()',
      DEFENCES,
    ],
    ['an unread topic is forgotten in time', 'if (touchedAt + UNREAD_MS > now()) break\n      forget(name)', 'break'],
    ['a closed bus takes nothing', `if (closed) throw new Refusal('closed', 'the event bus is closed')`, ''],
  ]),
  ...weaken('src/memory/cooperative/sites.ts', 'test/cooperative-site/registries.test.ts', [
    [
      'a site of another owner is not replaced',
      `if (old && old.owner !== input.owner) throw new Refusal('owner_mismatch')`,
      '',
    ],
    [
      'a site of another owner is not deleted',
      'entry === undefined || (owner !== undefined && entry.site.owner !== owner)',
      'entry === undefined',
    ],
    ['an owner has so many sites', 'if (sitesOf.of(owner) >= maxSitesPerUser)', 'if (false)'],
    ['sites are bounded', 'if (sites.size >= maxSites) throw', 'if (false) throw'],
    ['a site fits into a record', 'toJson(site, RECORD_BYTES)', ''],
    ['a site that is handed out does not change', 'deepFreeze(site)', ''],
    ['a site that was deleted is listed no more', 'listing.remove(entry)', ''],
  ]),
  ...weaken('src/contract/sites.ts', 'test/cooperative-site/registries.test.ts', [
    ['no site allows a generic action', `if (Array.isArray(names) && names.some(`, 'if (false && names.some('],
  ]),
  ...weaken('src/contract/sessions.ts', 'test/cooperative-site/registries.test.ts', [
    [
      'a connector is of the session’s owner',
      `if (connector && connector.user_id !== owner) throw new Refusal('owner_mismatch')`,
      '',
    ],
    ['a session is of its site’s owner', `if (site.owner !== owner) throw new Refusal('owner_mismatch')`, ''],
    [
      'a session is of a site that there is',
      `if (site === null) throw new Refusal('unknown_site')`,
      'if (site === null) return',
    ],
  ]),
  ...weaken('src/memory/cooperative/sessions.ts', 'test/cooperative-site/registries.test.ts', [
    ['a session moves as it may', 'if (!SESSION_MOVES[state].includes(session.state))', 'if (false)'],
    ['shares of a session are bounded', '!entry.shares.has(share.user_id) && entry.shares.size >= SHARES_MAX', 'false'],
    ['a share that is over gives nothing', 'share === undefined || hasPassed(share.expires_at)', 'share === undefined'],
    ['in memory, a watcher that throws is no business of others', 'guardHook(notify, onError)', '() => notify()'],
    [
      'a share that is over takes no place',
      'for (const [userId, { expires_at }] of entry.shares) if (hasPassed(expires_at)) entry.shares.delete(userId)',
      '',
    ],
  ]),
  ...weaken('src/memory/cooperative/session-entries.ts', 'test/cooperative-site/registries.test.ts', [
    ['an owner has so many sessions', 'if (own() >= maxSessionsPerUser)\n        throw', 'if (false)\n        throw'],
    ['sessions are bounded', `if (live.all.size >= maxSessions) throw`, 'if (false) throw'],
    ['sessions that ended are bounded', 'while (ended.all.size > maxSessions) {', 'while (false) {'],
    [
      'a session whose hour is over is none',
      'return entry && sessionAt(entry, now()) ? entry : undefined',
      'return entry',
    ],
    [
      'a session that ended and goes is of whoever has most',
      'ended.of(holders.fullest as string)?.values() ?? []',
      'ended.all.values()',
    ],
    [
      'a session that is over makes room',
      `if (own() >= maxSessionsPerUser) for (const entry of [...(live.of(owner) ?? new Map()).values()]) expire(entry)`,
      '',
    ],
  ]),
]
