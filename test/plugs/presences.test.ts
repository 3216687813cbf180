/** Reports about a page when answers of a host come late, change its owner, or are refused; without a browser. */
import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BrowserWindow, Context } from '../../src/index.js'
import { type BrowserFollower, type BrowserIdentity, followBrowser } from '../../src/plugs/playwright/index.js'
import { soon } from '../redis/wait-for.js'
import { createMemoryWorld, type World } from './world.js'

const ADA: BrowserIdentity = { user_id: 'ada', client_id: 'crawler', ownership: 'worker' }

function createBrowser() {
  const page = Object.assign(new EventEmitter(), { isClosed: () => false })
  const context = Object.assign(new EventEmitter(), { pages: () => [page] })
  const browser = Object.assign(new EventEmitter(), { contexts: () => [context] })
  return { page, context, browser }
}
type Page = ReturnType<typeof createBrowser>['page']

describe('a page', () => {
  let world: World
  let errors: unknown[]
  let follower: BrowserFollower<object, Page>
  let peer: ReturnType<typeof createBrowser>
  /** What the host says of the page; of its browser context it says nothing. */
  let answer: () => BrowserIdentity | Promise<BrowserIdentity>
  beforeEach(() => {
    world = createMemoryWorld()
    errors = []
    peer = createBrowser()
  })
  afterEach(async () => {
    await follower.close()
    await world.close()
  })

  const follow = (first: BrowserIdentity, isWindow = false) => {
    const { contexts, browserWindows } = world.facilities
    answer = () => first
    follower = followBrowser(peer.browser, {
      contexts,
      browserWindows,
      identify: (_context, page) => (page || isWindow ? answer() : null),
      heartbeatMs: 20,
      onError: (error) => void errors.push(error),
    })
  }
  const shown = async () => (await world.list<Context>('/contexts')).sort((a, b) => (a.user_id < b.user_id ? -1 : 1))
  const shows = (expected: object[]) => soon(async () => expect(await shown()).toMatchObject(expected))
  const reportedAgain = async () => {
    const at = (await shown()).at(-1)?.updated_at as string
    await soon(async () => expect(((await shown()).at(-1)?.updated_at as string) > at).toBe(true))
  }
  const says = async (now: BrowserIdentity | Promise<BrowserIdentity>) => {
    answer = () => now
    await follower.identifyAgain(peer.page)
  }

  it('is not reported with an unknown field, which is named', async () => {
    follow({ ...ADA, task: 't1' } as BrowserIdentity)
    await soon(async () => expect(errors.map(String)).toHaveLength(1))
    expect(String(errors[0])).toBe('TypeError: identify: Unknown field "task". Did you mean "task_id"?')
    expect(await shown()).toEqual([])
  })

  it('is what the last question was answered, whichever answer came last', async () => {
    follow(ADA)
    await shows([{ status: 'idle', task_id: null }])
    let late: (identity: BrowserIdentity) => void = () => {}
    const first = says(
      new Promise((resolve) => {
        late = resolve
      }),
    )
    await says({ ...ADA, task_id: 'crawl-2' })
    await shows([{ task_id: 'crawl-2' }])
    late({ ...ADA, task_id: 'crawl-1' })
    await first
    await reportedAgain()
    await shows([{ task_id: 'crawl-2' }])
  })

  it('continues unchanged when an answer is refused, and is closed when it is gone', async () => {
    follow({ ...ADA, task_id: 'crawl-1' })
    await shows([{ task_id: 'crawl-1' }])
    await says({ ...ADA, status: 'busy' as never })
    await soon(() => expect(errors).toMatchObject([{ code: 'invalid_input' }]))
    await reportedAgain()
    await shows([{ status: 'active', task_id: 'crawl-1' }])
    await says({ ...ADA, status: 'busier' as never })
    peer.page.emit('close')
    await shows([{ status: 'closed' }])
    expect(errors).toHaveLength(2)
  })

  it('is closed when it has gone, though its task was refused', async () => {
    follow({ ...ADA, task_id: ' ' })
    await soon(() => expect(errors[0]).toMatchObject({ code: 'invalid_input' }))
    await shows([{ status: 'active', task_id: null }])
    peer.page.emit('close')
    await shows([{ status: 'closed' }])
  })

  it('is closed and shown again when its user changes', async () => {
    follow(ADA, true)
    await shows([{ user_id: 'ada', status: 'idle' }])
    answer = () => ({ ...ADA, user_id: 'bob' })
    await follower.identifyAgain(peer.page)
    await follower.identifyAgain(peer.context)
    await shows([
      { user_id: 'ada', status: 'closed' },
      { user_id: 'bob', status: 'idle' },
    ])
    const windows = await soon(async () => {
      const all = await world.list<BrowserWindow>('/browser-windows')
      expect(all.map(({ user_id, status }) => [user_id, status]).sort()).toEqual([
        ['ada', 'closed'],
        ['bob', 'open'],
      ])
      return all
    })
    const bobs = windows.find(({ user_id }) => user_id === 'bob')?.window_id
    await soon(async () => expect((await shown()).at(-1)?.window_id).toBe(bobs))
    expect(errors).toEqual([])
  })

  it('is closed when its id cannot pass to another user, and the conflict is reported', async () => {
    follow({ ...ADA, context_id: 'page-1' })
    await shows([{ user_id: 'ada', status: 'idle' }])
    await says({ ...ADA, context_id: 'page-1', user_id: 'bob' })
    await soon(() => expect(errors).toMatchObject([{ code: 'identity_conflict' }]))
    await shows([{ user_id: 'ada', status: 'closed' }])
  })

  it('is a worker where it has no task as yet, and is given its first one later', async () => {
    const { ownership: _, ...told } = ADA
    follow({ ...told, task_id: null })
    await shows([{ ownership: 'worker', status: 'idle', task_id: null }])
    await says({ ...told, task_id: 'crawl-1' })
    await shows([{ ownership: 'worker', status: 'active', task_id: 'crawl-1' }])
    expect(errors).toEqual([])
  })

  it('keeps the task that its host has given it, until the host says that it has none', async () => {
    follow(ADA)
    await shows([{ task_id: null }])
    const [page] = await shown()
    await world.facilities.contexts.assignTask(page?.context_id as string, 'crawl-1')
    await reportedAgain()
    await reportedAgain()
    await shows([{ task_id: 'crawl-1' }])
    await says({ ...ADA, task_id: null })
    await shows([{ task_id: null }])
  })
})
