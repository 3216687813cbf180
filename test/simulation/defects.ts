/** Defects planted one at a time into the bundle: the oracle must find each of them. They are its negative controls. */
import type { Profile, StoreKind } from './config.js'

export interface Defect {
  name: string
  /** Text that occurs at least once in the bundle, and its replacement; every occurrence is replaced. */
  from: string
  to: string
  /** A rule that finds it. */
  rules: readonly string[]
  store: StoreKind
  profile?: Profile
  /** Where the search begins: a seed that finds it soon. */
  seed: number
}

export const DEFECTS: readonly Defect[] = [
  {
    name: 'words of a former instance count',
    from: "if was_asked ~= '' then return current ~= instance end",
    to: "if was_asked ~= '' then return false end",
    rules: ['stale_word'],
    store: 'redis',
    seed: 4,
  },
  {
    name: 'a full scope takes one more',
    from: 'reserved(scope) >= tonumber(capacity)',
    to: 'reserved(scope) > tonumber(capacity)',
    rules: ['capacity_exceeded'],
    store: 'redis',
    seed: 8,
  },
  {
    name: 'an end is not counted by its reason',
    from: 'add(reasons, reason, by)',
    to: 'tostring(reasons)',
    rules: ['counts_disagree', 'counts_unknown'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'an acknowledgement is lost',
    from: "unqueue(c)\n note(c, 'K', ",
    to: 'unqueue(c)\n tostring(',
    rules: ['acknowledgement_lost'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'an event is published twice',
    from: "if redis.call('ZSCORE', had, event_id) then return",
    to: 'if false then return',
    rules: ['published_twice'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'a gap is not told',
    from: 'if (found === this.ahead) return void 0;',
    to: 'if (found === this.ahead || found === oldest) { this.ahead = found; return void 0; }',
    rules: ['lost_without_gap', 'published_unheard'],
    store: 'memory',
    seed: 6,
  },
  {
    name: 'a gap is counted one short',
    from: 'const lost = { dropped: found - this.ahead,',
    to: 'const lost = { dropped: Math.max(1, found - this.ahead - 1),',
    rules: ['gap_miscounted'],
    store: 'memory',
    seed: 6,
  },
  {
    name: 'a write runs however late it comes',
    from: 'if stored_now >= tonumber(ends) then return',
    to: 'if false then return',
    rules: ['there_though_refused', 'stale_word', 'ended_twice', 'heard_though_denied', 'ran_though_denied'],
    store: 'redis',
    profile: 'all',
    seed: 59,
  },
  {
    name: 'what was sent is called not run',
    from: 'const outcome = isSent ? "unknown" : "not_run";',
    to: 'const outcome = "not_run";',
    rules: ['there_though_refused', 'ran_though_denied'],
    store: 'redis',
    profile: 'links',
    seed: 21,
  },
  {
    name: 'the reply of another client counts',
    from: "if has_sender == '1' and is_foreign(call) then",
    to: 'if false then',
    rules: ['foreign_counted'],
    store: 'redis',
    seed: 2,
  },
  {
    name: 'a message that arrives again is new',
    from: ' if before then\n local reply = cjson.decode(before)',
    to: ' if false then\n local reply = cjson.decode(before)',
    rules: ['claim_denied', 'claimed_twice', 'retained_twice', 'new_twice'],
    store: 'redis',
    profile: 'links',
    seed: 2,
  },
  {
    name: 'a reservation outlives its command',
    from: "if c.scope_shard == '' then add(scopes, c.scope, -1) end",
    to: "if c.scope_shard == '' and to ~= 'x' then add(scopes, c.scope, -1) end",
    rules: ['left_in_store', 'left_reserved', 'refused_with_room'],
    store: 'redis',
    seed: 3,
  },
  {
    name: 'a reservation is given back twice',
    from: "set_state(c, 'k')\n",
    to: "set_state(c, 'k')\n if c.scope_shard == '' then add(scopes, c.scope, -1) end\n",
    rules: ['capacity_exceeded'],
    store: 'redis',
    seed: 12,
  },
  {
    name: 'a word counts after the end in memory',
    from: 'return command?.terminal ? void 0 : command;',
    to: 'return command;',
    rules: ['end_lost', 'ended_twice'],
    store: 'memory',
    seed: 1,
  },
  {
    name: 'a paused command of a dead node is forgotten',
    from: "local found = find(column(k), '[ahp]', offset_of(at, k) + 1)",
    to: "local found = find(column(k), '[ah]', offset_of(at, k) + 1)",
    rules: ['not_attempted_again'],
    store: 'redis',
    profile: 'nodes',
    seed: 2,
  },
  {
    name: 'what is given back is forgotten',
    from: "\n place(c)\n return '0'",
    to: "\n save(c, payload_of(c))\n return '0'",
    rules: ['not_attempted_again'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'what is given back counts as an attempt',
    from: 'c.attempts = text(c.attempts - 1)',
    to: 'c.attempts = text(c.attempts)',
    rules: ['give_back_counted', 'too_many_attempts'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'an attach after the detach of the same order counts',
    from: 'own_order <= detached',
    to: 'own_order < detached',
    rules: ['admitted_unwaited'],
    store: 'redis',
    seed: 1,
  },
  {
    name: 'a reservation stays after a failed dispatch over shards',
    from: 'if (!isPlaceUsed) await release();',
    to: '',
    rules: ['left_reserved'],
    store: 'redis-sharded',
    seed: 1,
  },
  {
    name: 'dispatches of a command do not share its reservation',
    from: "if find(before, ' [^ ]') then",
    to: 'if false then',
    rules: ['capacity_exceeded'],
    store: 'redis-sharded',
    seed: 15,
  },
  {
    name: 'a slot of a call is released twice',
    from: '(taken.get(userId) ?? 1) - 1',
    to: '(taken.get(userId) ?? 1) - 2',
    rules: ['share_exceeded'],
    store: 'memory',
    seed: 5,
  },
  {
    name: 'a call that ends keeps its slot',
    from: 'finally {\n        release();',
    to: 'finally {\n        void release;',
    rules: ['share_refused'],
    store: 'memory',
    seed: 1,
  },
  {
    name: 'the key of a call that was not sent stays held',
    from: 'const release = () => say(() => store.release(',
    to: 'const release = async () => void (() => store.release(',
    rules: ['key_held'],
    store: 'memory',
    seed: 3,
  },
]

/** @throws Error where the library no longer has what the defect changes. */
export function plant({ name, from, to }: Defect): (text: string) => string {
  return (text) => {
    if (!text.includes(from)) throw new Error(`cannot plant "${name}": the bundle has no ${JSON.stringify(from)}`)
    return text.replaceAll(from, () => to)
  }
}
