import { expect, it, onTestFinished, vi } from 'vitest'
import { UsageError } from '../../src/cli/arguments.js'
import { connectStore } from '../../src/cli/observation.js'
import { loadMcp, loadStdio, SDK } from '../../src/cli/sdk.js'

const absent = () => {
  throw new Error('Cannot find package')
}

it.each([
  ['observe', 'redis', () => connectStore('redis://localhost'), '-p relayscope -p redis relayscope observe …'],
  [
    'observe --mcp, the store',
    'redis',
    () => connectStore('redis://localhost', [SDK]),
    `-p relayscope -p redis -p ${SDK} relayscope observe --mcp …`,
  ],
  [
    'observe --mcp, the agents',
    '../../src/mcp/mcp.js',
    loadMcp,
    `-p relayscope -p redis -p ${SDK} relayscope observe --mcp …`,
  ],
  ['mcp', `${SDK}/stdio`, loadStdio, `-p relayscope -p ${SDK} relayscope mcp …`],
] as const)('%s names all packages that it needs when one is missing', async (_, name, load, words) => {
  vi.doMock(name, absent)
  onTestFinished(() => void vi.doUnmock(name))
  const failed = await load().catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(UsageError)
  expect(String(failed)).toContain(`npx ${words}`)
})
