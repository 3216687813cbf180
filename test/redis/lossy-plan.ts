/** Which commands on their way to a store meet with what misfortune, for `lossy-store.ts` and `lossy-client.ts`. */
import type { ScriptText } from '../../src/redis/store/script.js'

/**
 * What happens to a matched command:
 * - `lost`: it runs, its reply is lost, and the caller sees a lost connection;
 * - `held`: it runs, its reply waits for `release()`;
 * - `late`: the caller sees a lost connection; it runs only at `release()`;
 * - `repeated`: it runs twice, one right after the other, with one reply;
 * - `resent`: it runs, its reply is lost, it runs again, with that reply: what ioredis does after a reconnect (only in
 * `lossy-client.ts`);
 * - `unsent`: it never runs, and the caller sees a lost connection.
 */
export type Fault = 'lost' | 'held' | 'late' | 'repeated' | 'resent' | 'unsent'

/** Commands as they are sent: the name first. */
export type Matcher = (args: readonly string[]) => boolean

export interface Plan {
  /** Every command since the start or the last `forget()`, to match them one after the other. */
  readonly seen: readonly (readonly string[])[]
  forget(): void
  /**
   * Lets `fault` happen to the `nth` command from now on that matches, and to no other; every call adds one. Resolves
   * when it has happened: for a command that runs, when the store has answered it.
   */
  meet(fault: Fault, matches?: Matcher, nth?: number): Promise<void>
  /** Sends held replies and runs late commands. Resolves when the store has replied to all of them. */
  release(): Promise<void>
}

/** Matches runs of `script`, by digest or in full. */
export async function runsOf(script: ScriptText): Promise<Matcher> {
  const digest = await script.digest
  return ([name, body]) => (name === 'EVALSHA' && body === digest) || (name === 'EVAL' && body === script.source)
}

/** Matches commands with that name. */
export const named =
  (name: string): Matcher =>
  (args) =>
    args[0]?.toUpperCase() === name.toUpperCase()

interface Rule {
  fault: Fault
  matches: Matcher
  left: number
  happened: () => void
}

/** A command that was met. `happened` is to be called once it has. */
export type Met = Pick<Rule, 'fault' | 'happened'>

/** Creates the plan, with the two functions that a connection uses. */
export function createPlan() {
  let seen: (readonly string[])[] = []
  const rules: Rule[] = []
  const waiting: (() => Promise<void>)[] = []
  const plan: Plan = {
    get seen() {
      return seen
    },
    forget() {
      seen = []
    },
    meet: (fault, matches = () => true, nth = 1) =>
      new Promise((resolve) => {
        rules.push({ fault, matches, left: nth, happened: resolve })
      }),
    async release() {
      await Promise.all(waiting.splice(0).map((go) => go()))
    },
  }
  return {
    plan,
    /** Returns the fault for a command that is sent now. */
    met(args: readonly string[]): Met | undefined {
      seen.push(args)
      let found: Rule | undefined
      for (const rule of [...rules]) {
        if (!rule.matches(args) || --rule.left > 0) continue
        found ??= rule
        rules.splice(rules.indexOf(rule), 1)
        if (found !== rule) rule.happened()
      }
      return found
    },
    /** Keeps what waits for `release()`. */
    wait: (go: () => Promise<void>) => void waiting.push(go),
  }
}
