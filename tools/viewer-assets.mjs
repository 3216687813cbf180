/** Bundles the viewer's page: one script and one style sheet, as texts that the package and the tests build in. */
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { minify } from 'terser'

const sourceOf = (file) => fileURLToPath(new URL(`../src/viewer/page/${file}`, import.meta.url))
// What is bundled brings its terms along.
const NOTICE = '/*! preact, MIT License, Copyright (c) 2015-present Jason Miller */'

async function bundle(file, options) {
  const { outputFiles } = await build({
    entryPoints: [sourceOf(file)],
    bundle: true,
    write: false,
    legalComments: 'none',
    ...options,
  })
  return outputFiles[0].text.trim()
}

async function script() {
  const jsx = { jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' }
  const text = await bundle('main.tsx', {
    format: 'esm',
    target: 'es2022',
    // Not the runtime that types are checked with: calls of `h` are shorter, by a twentieth of the script.
    tsconfigRaw: { compilerOptions: jsx },
    inject: [sourceOf('jsx.ts')],
  })
  const { code } = await minify(text, {
    module: true,
    ecma: 2020,
    compress: { passes: 3, pure_getters: true, unsafe_arrows: true },
    // Names of our own: no field of an answer is spelled so, and a browser's own are known.
    mangle: {
      properties: { regex: /^(is[A-Z].*|asOf|dueAt|keyOf|markOf|onEvent|onRetry|listeners|asking|answer|address)$/ },
    },
    format: { preamble: NOTICE },
  })
  return code
}

/** The two constants of `src/viewer/assets.ts`, as a bundler defines them. Takes a second. */
export async function viewerAssets() {
  const [js, css] = await Promise.all([script(), bundle('page.css', { minify: true })])
  // Texts and not one object, which a bundler would put where every entry finds it.
  return { RELAYSCOPE_VIEWER_SCRIPT: JSON.stringify(js), RELAYSCOPE_VIEWER_STYLE: JSON.stringify(css) }
}
