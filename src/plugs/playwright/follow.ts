/** Follows the browser contexts and pages of a browser: they become windows, and contexts in them. */
import { guardErrorHook } from '../../async/hook.js'
import type { BrowserWindowRegistry, ReportBrowserWindowInput } from '../../contract/browser-windows.js'
import type { ContextRegistry, ReportContextInput } from '../../contract/contexts.js'
import { checkOptions, FUNCTION, having, needed, resolveBounds, type Shape } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { checkIdentity, FOLLOW_BOUNDS, FOLLOW_OPTIONS, type Follower, type FollowOptions } from '../follow/options.js'
import { createPresenceFollower, type Followed, NOBODY, type Presence } from '../follow/presences.js'
import type { FollowedBrowser, FollowedBrowserContext, FollowedPage } from './peer.js'

/** Whose a browser context or a page is, and what the host alone knows of it. */
export type BrowserIdentity = Pick<ReportContextInput, 'user_id' | 'client_id' | 'instance_id' | 'ownership'> &
  Partial<Pick<ReportContextInput, 'context_id' | 'client_type' | 'status'>> &
  Pick<ReportBrowserWindowInput, 'focused' | 'type' | 'state' | 'incognito' | 'capacity' | 'draining'> & {
    /** The window's id: of a browser context its own, of a page the one that it is shown in. @default random; that of its browser context */
    window_id?: string | undefined
    /** Of a page: the task that it works on. `ownership` is then `worker`, unless it is said otherwise. @default none */
    task_id?: string | null | undefined
  }

export interface FollowBrowserOptions<C, P> extends FollowOptions {
  /** What pages are written to: that of either composition. */
  contexts: ContextRegistry
  /** What browser contexts are written to. */
  browserWindows: BrowserWindowRegistry
  /**
   * Whose a browser context is (`page` is `null` then), and each page in it. `null` is not followed; pages are asked for all
   * the same.
   */
  identify: (context: C, page: P | null) => BrowserIdentity | null | PromiseLike<BrowserIdentity | null>
  /** Ids of windows and contexts that `identify` gives none. @default crypto.randomUUID */
  newId?: (() => string) | undefined
}

export interface BrowserFollower<C, P> extends Follower {
  /**
   * Asks `identify` once more about a browser context or a page: its task, say, is another one. Its ids stay those of the first
   * answer; `null` closes it for good.
   */
  identifyAgain(peer: C | P): Promise<void>
}

const OPTIONS: Shape<FollowBrowserOptions<unknown, unknown>> = {
  ...FOLLOW_OPTIONS,
  contexts: needed(having('report', 'close', 'assignTask', 'releaseTask')),
  browserWindows: needed(having('report', 'close')),
  identify: needed(FUNCTION),
  newId: FUNCTION,
}

const NO_WORKER = new Refusal('invalid_input', 'task_id: the context was first reported as no worker')

const NAMED = ['user_id', 'client_id']

/** A page as a context, which is given its task where the registry has another one. */
function pagePresence(
  contexts: ContextRegistry,
  context_id: string,
  windowId: () => string | null,
  given: BrowserIdentity,
  refused: (error: Refusal) => void,
) {
  const { task_id = null, window_id, client_type = 'browser' } = given
  const ownership = given.ownership ?? (task_id === null ? 'user-owned' : 'worker')
  const status = given.status ?? (ownership === 'worker' && task_id === null ? 'idle' : 'active')
  const { user_id, client_id, instance_id = null } = given
  const own = { context_id, user_id, client_id, instance_id, client_type, ownership, status }
  return {
    async report() {
      const context = await contexts.report({ ...own, window_id: window_id ?? windowId() })
      if (context.task_id === task_id) return
      if (context.task_id !== null) await contexts.releaseTask(context_id)
      if (task_id !== null && (await contexts.assignTask(context_id, task_id)) === null) refused(NO_WORKER)
    },
    close: () => contexts.close(context_id),
  } satisfies Presence
}

/** A browser context as a window, with as many tabs as it has pages. */
function windowPresence(windows: BrowserWindowRegistry, window_id: string, tabs: () => number, given: BrowserIdentity) {
  const { user_id, client_id, ownership, focused, type, state, incognito, capacity, draining } = given
  const own = { window_id, user_id, client_id, ownership, focused, type, state, incognito, capacity, draining }
  return {
    report: () => windows.report({ ...own, tab_count: tabs() }),
    close: () => windows.close(window_id),
  } satisfies Presence
}

/** A browser context and its pages. */
interface Window<P> {
  /** As what it is shown; `null` while it is not. */
  id: string | null
  followed: Followed
  readonly pages: Map<P, FollowedPlace>
  release(): void
}

interface FollowedPlace {
  readonly followed: Followed
  learn(): Promise<void>
  release(): void
}

/** A page that has crashed is dead: nothing can be done with it but to close it. */
const ENDS = ['close', 'crash'] as const

/**
 * Follows `browser`: a browser context is a window, a page a context in it, reported when `identify` has said whose it is and
 * every `heartbeatMs` from then on, closed when it closes, crashes, or the browser goes. It listens, and changes nothing of the
 * browser; no URL, title or content of a page is read.
 *
 * @throws TypeError, RangeError for an option that cannot be used.
 *
 * @example
 * followBrowser(browser, { ...facilities, identify: () => ({ user_id: 'ada', client_id: 'crawler' }) })
 */
export function followBrowser<C extends object, P extends FollowedPage>(
  browser: FollowedBrowser<C, P>,
  options: FollowBrowserOptions<C, P>,
): BrowserFollower<C, P> {
  checkOptions(options, OPTIONS)
  const { contexts, browserWindows, identify, newId = () => crypto.randomUUID(), onError } = options
  type Context = C & FollowedBrowserContext<P>
  const windows = new Map<C, Window<P> & { learn(): Promise<void> }>()
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'write' })
  const follower = createPresenceFollower({ ...resolveBounds(options, FOLLOW_BOUNDS), report, look })

  const asked = async (context: C, page: P | null) => checkIdentity(await identify(context, page), NAMED)

  function onPage(context: Context, window: Window<P>, page: P): void {
    if (window.pages.has(page) || page.isClosed()) return
    let id: string | undefined
    const learn = async () => {
      const identity = await asked(context, page)
      if (identity === null) return null
      id ??= identity.context_id ?? newId()
      return pagePresence(contexts, id, () => window.id, identity, failed)
    }
    const followed = follower.follow(learn)
    const left = () => leavePage(window, page)
    for (const end of ENDS) page.on(end, left)
    const release = () => {
      for (const end of ENDS) page.off(end, left)
    }
    window.pages.set(page, { followed, learn: () => followed.learn(learn), release })
    window.followed.changed()
  }

  function leavePage(window: Window<P>, page: P): void {
    const place = window.pages.get(page)
    place?.release()
    place?.followed.leave()
    window.pages.delete(page)
    window.followed.changed()
  }

  function onContext(context: Context): void {
    if (windows.has(context)) return
    const learn = async () => {
      const identity = await asked(context, null)
      if (identity === null) return null
      window.id ??= identity.window_id ?? newId()
      for (const { followed } of window.pages.values()) followed.changed()
      return windowPresence(browserWindows, window.id, () => context.pages().length, identity)
    }
    const pageOpened = (page: P) => onPage(context, window, page)
    const closed = () => leaveContext(context)
    const window: Window<P> & { learn(): Promise<void> } = {
      id: null,
      followed: NOBODY,
      pages: new Map(),
      learn: () => window.followed.learn(learn),
      release() {
        context.off('page', pageOpened)
        context.off('close', closed)
        for (const { release } of window.pages.values()) release()
      },
    }
    windows.set(context, window)
    window.followed = follower.follow(learn)
    context.on('page', pageOpened)
    context.on('close', closed)
    for (const page of context.pages()) pageOpened(page)
  }

  function leaveContext(context: C): void {
    const window = windows.get(context)
    if (!window) return
    windows.delete(context)
    window.release()
    for (const { followed } of window.pages.values()) followed.leave()
    window.followed.leave()
  }

  /** Finds what no event has told of. */
  function look(): void {
    for (const context of browser.contexts()) onContext(context)
  }

  function onDisconnected(): void {
    for (const context of windows.keys()) leaveContext(context)
  }
  browser.on('context', onContext)
  browser.on('disconnected', onDisconnected)
  look()

  return {
    async identifyAgain(peer) {
      for (const [context, { learn, pages }] of windows) {
        if (context === peer) await learn()
        await pages.get(peer as P)?.learn()
      }
    },
    close() {
      browser.off('context', onContext)
      browser.off('disconnected', onDisconnected)
      for (const { release } of windows.values()) release()
      windows.clear()
      return follower.close()
    },
  }
}
