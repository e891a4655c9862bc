import { isMasonError, toErrorMessage } from '../../state/errors.ts'
import type { RunEvent, RunStatus } from '../../state/run-view.ts'
import { exitCodes } from './errors.ts'
import type { RunGateway, RunHandle } from './gateway.ts'
import { formatQuestion, type InputRequest, promptForAnswer } from './input-prompt.ts'
import type { Renderer } from './renderer.ts'
import { type Terminal, toOneLine } from './terminal.ts'

type RunDisplay = { renderer: Renderer; terminal: Terminal; gateway: Pick<RunGateway, 'formatAnswerCommand'> }

/**
 * Shows a run until it ends, or until it needs input and no person is at the terminal. Returns the exit code. When
 * `cancelled` aborts, the run is cancelled and followed to its end.
 */
export const followRun = async (
  handle: RunHandle,
  display: RunDisplay,
  cancelled: AbortSignal,
): Promise<number> => {
  const { renderer, terminal } = display
  const finished = new AbortController()
  const cancel = (): void => {
    renderer.note('cancelling … (press Ctrl-C again to quit at once)')
    handle.cancel('Ctrl-C').catch((error: unknown) => renderer.note(`cannot cancel: ${toErrorLine(error)}`))
  }
  if (cancelled.aborted) cancel()
  cancelled.addEventListener('abort', cancel, { once: true })
  const questions = createQuestionPrompts(handle, display)
  try {
    for await (const event of handle.events(finished.signal)) {
      renderer.event(event)
      if (event.event === 'done') return toStatusExitCode(event.data.status)
      if (event.event === 'input_required' && !terminal.canAsk) {
        printQuestion(handle, event.data, display)
        return exitCodes.inputRequired
      }
      questions.onEvent(event)
    }
    return exitCodes.failed
  } finally {
    cancelled.removeEventListener('abort', cancel)
    questions.close()
    finished.abort()
    renderer.close()
  }
}

const toErrorLine = (error: unknown): string => toOneLine(toErrorMessage(error))

const toStatusExitCode = (status: RunStatus): number => {
  if (status === 'completed') return exitCodes.done
  return status === 'cancelled' ? exitCodes.cancelled : exitCodes.failed
}

const printQuestion = (
  { run }: RunHandle,
  request: InputRequest,
  { renderer, gateway }: RunDisplay,
): void => {
  for (const line of ['the run is waiting for an answer:', ...formatQuestion(request)]) renderer.note(line)
  renderer.note(`to answer: ${gateway.formatAnswerCommand(run.id, request.id)}`)
}

/** Asks each open question once while events go on; a question that is answered elsewhere is withdrawn. */
const createQuestionPrompts = (handle: RunHandle, { renderer, terminal }: RunDisplay) => {
  const promptedIds = new Set<string>()
  let openPrompt: AbortController | null = null

  const ask = async (request: InputRequest, signal: AbortSignal): Promise<void> => {
    for (;;) {
      renderer.pause()
      const answer = await promptForAnswer(request, terminal, signal)
      try {
        return await handle.answer(request.id, answer)
      } catch (error) {
        if (!isMasonError(error, 'invalid_request')) throw error
        renderer.note(toErrorLine(error))
      }
    }
  }
  const close = (): void => {
    openPrompt?.abort()
    openPrompt = null
  }
  return {
    onEvent(event: RunEvent): void {
      if (event.event === 'status' && event.data.status !== 'input_required') close()
      if (event.event !== 'input_required' || promptedIds.has(event.data.id)) return
      promptedIds.add(event.data.id)
      const prompt = new AbortController()
      openPrompt = prompt
      ask(event.data, prompt.signal).catch((error: unknown) => {
        if (!prompt.signal.aborted) renderer.note(toErrorLine(error))
      })
    },
    close,
  }
}
