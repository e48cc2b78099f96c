"""A run whose model is given, of a table that was read in a known way."""

from fivo.data import TableSchema
from fivo.inference import Trained
from fivo.models import SequenceModel


class Known(Trained):
    """As much of a run as tables need."""

    model: SequenceModel = None
    table: TableSchema = None

    def __init__(self, model, table):
        self.model, self.table = model, table

    @property
    def columns(self):
        return self.table.columns
