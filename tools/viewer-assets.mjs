/** Bundles the viewer's page: one script and one style sheet, as texts that the package and the tests build in. */
import { build } from 'esbuild'

const SOURCE = new URL('../src/viewer/page/', import.meta.url)
// What is bundled brings its own terms along.
const NOTICE = '/*! preact, MIT License, Copyright (c) 2015-present Jason Miller */'

async function bundle(file, options) {
  const { outputFiles } = await build({
    entryPoints: [new URL(file, SOURCE).pathname],
    bundle: true,
    minify: true,
    write: false,
    legalComments: 'none',
    logLevel: 'warning',
    ...options,
  })
  return outputFiles[0].text.trim()
}

/** The two constants of `src/viewer/assets.ts`, as a bundler defines them. Takes a tenth of a second. */
export async function viewerAssets() {
  const [script, style] = await Promise.all([
    bundle('main.tsx', {
      format: 'esm',
      target: ['es2022'],
      jsx: 'automatic',
      jsxImportSource: 'preact',
      banner: { js: NOTICE },
    }),
    bundle('page.css', {}),
  ])
  // Texts and not one object, which a bundler would put where every entry finds it.
  return { RELAYSCOPE_VIEWER_SCRIPT: JSON.stringify(script), RELAYSCOPE_VIEWER_STYLE: JSON.stringify(style) }
}
