//! Decodes chunks on several threads. One thread receives the blocks in order.
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Error,
    block::Block,
    chunk_reader::{Chunk, ChunkReader},
    column_decoder::RowDecoder,
};

/// No chunk is read while the blocks that are not yet received may take more bytes than this.
const AHEAD: usize = 24 << 20;

/// A block of decoded rows, dense or sparse.
pub(crate) trait Decoded: Default + Send {
    /// Replaces the rows by those of a chunk.
    fn decode(
        &mut self,
        chunk: &Chunk<'_>,
        buffer: &[u8],
        decoder: &RowDecoder,
        used: &[usize],
    ) -> Result<(), Error>;
}

impl Decoded for Block {
    fn decode(
        &mut self,
        chunk: &Chunk<'_>,
        buffer: &[u8],
        decoder: &RowDecoder,
        used: &[usize],
    ) -> Result<(), Error> {
        chunk.decode(buffer, decoder, used, self)
    }
}

/// Decodes all chunks and passes the blocks to `each`, in order, until it breaks.
pub(crate) fn run<P: Decoded>(
    chunks: ChunkReader<'_>,
    decoder: &RowDecoder,
    threads: usize,
    each: &mut dyn FnMut(&P) -> ControlFlow<()>,
) -> Result<(), Error> {
    let used = decoder.used();
    let pipeline = Pipeline {
        chunks: Mutex::new((chunks, 0)),
        reorder: Mutex::new(Reorder::default()),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        // Stops the threads on every exit, also after a panic in `each`.
        let _close = Close(&pipeline);
        for _ in 0..threads {
            scope.spawn(|| {
                let _close = CloseOnPanic(&pipeline);
                pipeline.work(decoder, &used);
            });
        }
        let mut number = 0;
        while let Some(block) = pipeline.take(number) {
            let block = block?;
            if each(&block).is_break() {
                break;
            }
            lock(&pipeline.reorder).spare.push(block);
            number += 1;
        }
        Ok(())
    })
}

struct Pipeline<'a, P> {
    chunks: Mutex<(ChunkReader<'a>, u64)>,
    reorder: Mutex<Reorder<P>>,
    changed: Condvar,
}

/// Finished blocks, which wait until those before them are finished.
struct Reorder<P> {
    blocks: BTreeMap<u64, (Result<P, Error>, usize)>,
    /// The bytes of all blocks that are not yet received, finished or not.
    cost: usize,
    /// The number of blocks, once it is known.
    count: Option<u64>,
    closed: bool,
    /// Blocks to reuse: fresh memory is slow.
    spare: Vec<P>,
}

impl<P> Default for Reorder<P> {
    fn default() -> Self {
        let (blocks, spare) = (BTreeMap::new(), Vec::new());
        Reorder { blocks, cost: 0, count: None, closed: false, spare }
    }
}

impl<P: Decoded> Pipeline<'_, P> {
    fn work(&self, decoder: &RowDecoder, used: &[usize]) {
        let mut buffer = Vec::new();
        loop {
            let mut reorder = lock(&self.reorder);
            while reorder.cost > AHEAD && !reorder.closed {
                reorder = self.changed.wait(reorder).unwrap_or_else(PoisonError::into_inner);
            }
            if reorder.closed || reorder.count.is_some() {
                return;
            }
            drop(reorder);
            let mut chunks = lock(&self.chunks);
            if lock(&self.reorder).count.is_some() {
                return;
            }
            let number = chunks.1;
            chunks.1 += 1;
            let chunk = match chunks.0.next(&mut buffer) {
                Ok(Some(chunk)) => chunk,
                end => {
                    // No chunk is read after the end, nor after an error.
                    let mut reorder = lock(&self.reorder);
                    reorder.count = Some(number + u64::from(end.is_err()));
                    if let Err(error) = end {
                        reorder.blocks.insert(number, (Err(error), 0));
                    }
                    self.changed.notify_all();
                    return;
                }
            };
            lock(&self.reorder).cost += chunk.cost;
            drop(chunks);
            let mut block = lock(&self.reorder).spare.pop().unwrap_or_default();
            let block = block.decode(&chunk, &buffer, decoder, used).map(|()| block);
            lock(&self.reorder).blocks.insert(number, (block, chunk.cost));
            self.changed.notify_all();
        }
    }

    /// Waits for a block. `None` after the last.
    fn take(&self, number: u64) -> Option<Result<P, Error>> {
        let mut reorder = lock(&self.reorder);
        loop {
            if let Some((block, cost)) = reorder.blocks.remove(&number) {
                reorder.cost -= cost;
                self.changed.notify_all();
                return Some(block);
            }
            if reorder.closed || reorder.count == Some(number) {
                return None;
            }
            reorder = self.changed.wait(reorder).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        lock(&self.reorder).closed = true;
        self.changed.notify_all();
    }
}

struct Close<'a, 'b, P: Decoded>(&'a Pipeline<'b, P>);

impl<P: Decoded> Drop for Close<'_, '_, P> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Closes the pipeline if a thread panics. Otherwise the others would wait for its block.
struct CloseOnPanic<'a, 'b, P: Decoded>(&'a Pipeline<'b, P>);

impl<P: Decoded> Drop for CloseOnPanic<'_, '_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
