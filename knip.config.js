import { FACES } from './tools/faces.mjs'

/** @type {import('knip').KnipConfig} */
export default {
  // The public faces, of which package.json names the built form; programs that a test or a person starts.
  entry: [
    ...Object.values(FACES),
    // Bundled into the viewer by the build.
    'src/dashboard/page/{main.tsx,jsx.ts}',
    'examples/**/*.mjs',
    'examples/frameworks/**/*.js',
    'tools/*.{ts,mjs}',
    'tools/demo/page.mjs',
    'bench/*.{ts,mjs}',
    'test/adapters/hosts/*.ts',
    'test/plugs/inferred-types.ts',
    'test/simulation/simulate.ts',
    'test/end-to-end/acknowledgements/*.mjs',
    'test/campaign/{fuzz.mjs,fuzz-run.ts,faults.mjs,faults-run.ts,faults-node.ts}',
  ],
  project: ['src/**/*.{ts,tsx}', 'test/**/*.{ts,mjs}', 'examples/**/*.mjs', 'tools/*.{ts,mjs}', 'bench/**/*.{ts,mjs}'],
  // A schema and its type share one name; a factory names the type of what it makes.
  exclude: ['duplicates', 'types'],
  // Paths of the live host's server, imported by its pages.
  ignoreUnresolved: ['/ask.mjs', '/relay-client.mjs', '/relayscope-browser.mjs'],
  // Programs of the machine that benchmarks measure, or compile, what they are held against with; and what tests use.
  ignoreBinaries: ['redis-server', 'redis-cli', 'valgrind', 'gcc', 'nginx', 'prometheus', 'promtool', 'openssl'],
  // Called by tools/test-all.mjs as programs; Stryker is fetched by npx; Nest is what a reader of its example has installed.
  ignoreDependencies: [
    '@nestjs/common',
    '@nestjs/core',
    '@nestjs/websockets',
    '@arethetypeswrong/cli',
    '@redocly/cli',
    'publint',
    '@stryker-mutator/vitest-runner',
  ],
}
