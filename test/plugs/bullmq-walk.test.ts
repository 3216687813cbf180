/** That a walk over the jobs of a queue which is worked misses none that stays where it is, and says nothing that was not. */
import type { Job, Queue, Worker } from 'bullmq'
import { expect, it } from 'vitest'
import type { DeliveryCommand } from '../../src/internal/contract/delivery.js'
import { get, type Router } from '../redis/router.js'
import { describeBullmq, observe, startWorld } from './bullmq-world.js'

const LIMIT = 20

/** The ids of all jobs that a walk shows, between whose pages `meanwhile` happens. */
async function walk(router: Router, meanwhile: (page: number) => Promise<unknown>, query = ''): Promise<string[]> {
  const shown: string[] = []
  for (let cursor = '', page = 1; ; page++) {
    const { status, body } = await get(router, `/delivery/commands?limit=${LIMIT}${query}${cursor}`)
    expect(status).toBe(200)
    shown.push(...body.items.map(({ command_id }: DeliveryCommand) => command_id.replace(/^[^:]*:/, '')))
    if (!body.has_more) return shown
    expect(page).toBeLessThan(100)
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
    await meanwhile(page)
  }
}

const bulk = (count: number, opts: (i: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) => ({ name: 'work', data: {}, opts: { jobId: `j${i}`, ...opts(i) } }))

/** Takes and ends so many jobs. */
async function work(worker: Worker, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const job = await worker.getNextJob('token')
    await job?.moveToCompleted('done', 'token', false)
  }
}

describeBullmq('a walk over a queue that is worked', (bullmq) => {
  const idsIn = async (queue: Queue, ...states: Parameters<Queue['getJobs']>[0] & string[]) =>
    (await queue.getJobs(states, 0, -1)).map(({ id }) => id as string)

  it.each([
    ['wait', 'fewer than a page', {}, 15],
    ['wait', 'more than a page', {}, 25],
    ['prioritized', 'fewer than a page', { priority: 3 }, 15],
    ['prioritized', 'more than a page', { priority: 3 }, 25],
  ] as const)('misses none that stays in %s while %s are done', async (state, _how, opts, count) => {
    const { queue, worker } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(200, () => ({ removeOnComplete: true, ...opts })))
    const idle = await worker('emails', null as never)
    let done = 0
    const shown = await walk(observe({ queues: [emails] }), async () => {
      // Some are left at the end.
      done += count
      if (done <= 150) await work(idle, count)
    })
    const stayed = await idsIn(emails, state)
    expect(stayed.length).toBeGreaterThan(0)
    expect(stayed.filter((id) => !shown.includes(id))).toEqual([])
  })

  it('misses none of those that have ended, of which the oldest are taken away', async () => {
    const { queue, worker } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(120))
    await work(await worker('emails', null as never), 120)
    const shown = await walk(observe({ queues: [emails] }), () => emails.clean(0, 15, 'completed'))
    expect((await idsIn(emails, 'completed')).filter((id) => !shown.includes(id))).toEqual([])
    expect(new Set(shown).size).toBe(shown.length)
  })

  it('misses none where the job that was shown last has come back at the other end', async () => {
    const { server, queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(60))
    const last = `j${60 - LIMIT}`
    const shown = await walk(observe({ queues: [emails] }), async (page) => {
      if (page > 1) return
      await server.cli('LREM', 'bull:emails:wait', '0', last)
      await server.cli('RPUSH', 'bull:emails:wait', last)
    })
    expect(shown[LIMIT - 1]).toBe(last)
    expect((await idsIn(emails, 'wait')).filter((id) => !shown.includes(id))).toEqual([])
    await emails.obliterate()
    await emails.addBulk(bulk(60, (i) => ({ delay: 1e6 + i * 1e3 })))
    const delayed = await walk(observe({ queues: [emails] }), async (page) => {
      if (page === 1) await (await emails.getJob(last))?.changeDelay(1e5)
    })
    expect(delayed[LIMIT - 1]).toBe(last)
    expect((await idsIn(emails, 'delayed')).filter((id) => !delayed.includes(id))).toEqual([])
  })

  it('misses none of those that failed where some of them are retried', async () => {
    const { queue, worker } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(120))
    const idle = await worker('emails', null as never)
    for (let i = 0; i < 120; i++) {
      const job = await idle.getNextJob('token')
      await (job as Job).moveToFailed(new Error('no'), 'token', false)
    }
    let retried = 0
    const shown = await walk(
      observe({ queues: [emails] }),
      async () => {
        if (++retried > 3) return
        for (const job of await emails.getJobs(['failed'], 0, 4)) await job.retry()
      },
      '&state=failed',
    )
    expect((await idsIn(emails, 'failed')).filter((id) => !shown.includes(id))).toEqual([])
  })

  it('ends though jobs come and go faster than they are shown', async () => {
    const { queue, worker } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(100, () => ({ removeOnComplete: true })))
    const idle = await worker('emails', null as never)
    let added = 100
    const shown = await walk(observe({ queues: [emails] }), async () => {
      await emails.addBulk(bulk(30, (i) => ({ removeOnComplete: true, jobId: `j${added + i}` })))
      added += 30
      await work(idle, 30)
    })
    expect(shown.length).toBeGreaterThanOrEqual(100)
  })

  it('continues after a job of any name, and skips one with a name that is too long', async () => {
    const { queue } = await startWorld(bullmq)
    const [emails, odd] = [queue('emails'), queue('odd/näme %2F')]
    const names = ['a.b', '0.1.2', 'ü %25', '😀', 'x'.repeat(240), 'y'.repeat(300)]
    for (const each of [emails, odd])
      for (const jobId of names) await each.add('work', {}, { jobId, priority: names.indexOf(jobId) + 1 })
    const router = observe({ queues: [emails, odd] })
    const shown: string[] = []
    for (let cursor = ''; ; ) {
      const { status, body } = await get(router, `/delivery/commands?limit=1${cursor}`)
      expect(status).toBe(200)
      shown.push(...body.items.map(({ command_id }: DeliveryCommand) => command_id))
      if (!body.has_more) break
      cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
    }
    expect(shown).toHaveLength(9)
    expect(new Set(shown).size).toBe(9)
  })

  it('ends a page with what it has where `identify` never answers', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(1_000))
    const router = observe({ queues: [emails], identify: () => new Promise(() => {}) })
    const { status, body } = await get(router, '/delivery/commands?user_id=ada')
    expect(status).toBe(200)
    expect(body).toMatchObject({ items: [], has_more: true })
    expect(body.next_cursor).not.toBeNull()
  })

  it('says of no job that it was refused where it may have ended well', async () => {
    const { queue, worker } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(bulk(2, (i) => ({ attempts: 1 + i })))
    const idle = await worker('emails', null as never)
    const router = observe({ queues: [emails] })
    const reasons = async () => {
      const { body } = await get(router, '/delivery/commands')
      return body.items
        .map(({ command_id, recovery }: DeliveryCommand) => [command_id, recovery.count, recovery.reason])
        .sort()
    }
    const take = async () => (await idle.getNextJob('token')) as Job
    const first = await take()
    await first.moveToCompleted('done', 'token', false)
    const second = await take()
    await second.moveToFailed(new Error('no'), 'token', false)
    const again = await take()
    await again.moveToCompleted('done', 'token', false)
    expect([first.id, second.id, again.id]).toEqual(['j0', 'j1', 'j1'])
    const refused = ['emails:j1', 1, 'deliver_rejected']
    expect(await reasons()).toEqual([['emails:j0', 0, null], refused])

    await (await emails.getJob('j0'))?.retry('completed')
    expect(await reasons()).toEqual([['emails:j0', 1, 'other'], refused])
    await (await take()).moveToCompleted('done', 'token', false)
    expect(await reasons()).toEqual([['emails:j0', 1, 'other'], refused])
    await (await emails.getJob('j0'))?.retry('completed')
    await (await take()).moveToFailed(new Error('no'), 'token', false)
    expect(await reasons()).toEqual([['emails:j0', 2, 'other'], refused])
  })
})
