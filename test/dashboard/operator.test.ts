/** What misled operators: connections of a silent node, clients behind busy ones, tenants by use, and times in filters. */
import { expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld, NOW, node } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce } from './host.js'

const at = (ms: number) => new Date(NOW + ms).toISOString()

inChromium('the dashboard, asked by an operator', (open) => {
  it('does not show a connection of a silent node as if it were well', async () => {
    const world = createWorld()
    world.delivery.nodes = [node({ node_id: 'dead', stale: true, staleness_ms: 60_000 }), node({ node_id: 'node-2' })]
    const connections = [
      connection({ connection_id: 'held', client_id: 'phone', node_id: 'dead' }),
      connection({ connection_id: 'well', client_id: 'desk', node_id: 'node-2' }),
    ]
    const host = await startViewedOnce({ ...world, connections })
    const page = await open(`${host.page}#/connections`, { key: KEY })
    const row = (client: string) => page.locator('tbody tr', { hasText: client })
    await row('phone').getByText('connected, node silent').waitFor()
    expect(await row('desk').getByText('node silent').count()).toBe(0)
    await page.goto(`${host.page}#/connections/held`)
    await page.locator('.fields').getByText('connected, node silent').waitFor()
  })

  it('shows a client that stayed connected however many connections of another one came since', async () => {
    const loop = Array.from({ length: 40 }, (_, i) => {
      const ended = { status: 'disconnected', disconnected_at: at(-1_000), ended_reason: 'new_instance' } as const
      return connection({
        connection_id: `loop-${i}`,
        user_id: 'ada',
        client_id: 'tab',
        connected_at: at(-2_000),
        ...ended,
      })
    })
    const laptop = connection({
      connection_id: 'stays',
      user_id: 'ada',
      client_id: 'laptop',
      connected_at: at(-50_000),
    })
    const host = await startViewedOnce({ ...createWorld(), connections: [laptop, ...loop] })
    const page = await open(`${host.page}#/users/ada/summary`, { key: KEY })
    await page.locator('.lane', { hasText: 'laptop' }).waitFor()
    await page.getByRole('heading', { name: 'Connected', exact: true }).waitFor()
  })

  it('lists tenants by what they hold', async () => {
    const world = createWorld()
    const tenant = (scope_id: string, reserved_commands: number) =>
      ({ scope_id, reserved_commands, capacity: 20, oldest_deadline_at: null, metadata: {} }) as never
    world.delivery.tenants = [tenant('a', 1), tenant('b', 20), tenant('c', 7)]
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/delivery/tenants`, { key: KEY })
    await expect
      .poll(async () => (await page.locator('tbody th').allInnerTexts()).map((text) => text.trim()))
      .toEqual(['b', 'c', 'a'])
  })

  it('takes a time before now in the filter from', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.getByText('+ filter').click()
    const add = async (name: string, text: string) => {
      await page.getByLabel('filter', { exact: true }).selectOption(name)
      await page.locator('.add input').fill(text)
      await page.keyboard.press('Enter')
      await page.locator(`.chip.on[data-filter=${name}]`).waitFor()
    }
    await add('from', '-5m')
    await expect.poll(() => page.url()).toMatch(/from=\d{13}/)
    const asked = () => host.asked.some((path) => /^\/connections\?.*from=\d{13}/.test(path))
    await expect.poll(asked).toBe(true)
    expect(await page.locator('main .trouble').count()).toBe(0)
  })
})
